// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package main

import (
	"testing"

	"tamga/internal/tamgatest"
)

// onOwnProcessor only starts the server: the system decides which processors it uses.
func onOwnProcessor(_ *testing.B, start func() *tamgatest.Server) *tamgatest.Server { return start() }
