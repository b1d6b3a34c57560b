// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"context"

	"tamga/internal/domain/audit"
)

// Unconfirmed takes the place of the confirmations of users in tests without any.
type Unconfirmed struct{}

// CancelAll cancels nothing.
func (Unconfirmed) CancelAll(context.Context, audit.Principal, string, string) error { return nil }

// Forgive deletes no counts.
func (Unconfirmed) Forgive(context.Context, string) error { return nil }
