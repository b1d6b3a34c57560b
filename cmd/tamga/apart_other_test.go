// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package main

import "testing"

// apart lets the system share the processors out.
func apart(_ *testing.B, start func() *process) *process { return start() }
