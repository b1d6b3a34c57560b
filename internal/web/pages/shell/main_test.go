// SPDX-License-Identifier: Apache-2.0

package shell_test

import (
	"testing"

	"tamga/internal/tamgatest"
)

func TestMain(m *testing.M) { tamgatest.Main(m) }
