// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package files

// SyncDir does nothing: Windows has no such call for a directory, and NTFS writes the names of
// files to its own log.
func SyncDir(string) error { return nil }
