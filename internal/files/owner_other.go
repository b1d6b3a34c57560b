// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package files

import "os"

// ownerOf knows nothing on this system.
func ownerOf(os.FileInfo) (uid, gid int, known bool) { return 0, 0, false }

func readOnly(string) bool { return false }
