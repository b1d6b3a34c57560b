// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package blob

import "os"

// queues has no queues on this system, which has no asynchronous writes here.
type queues struct{}

func (*queues) open(*os.File, int64) aside { return nil }
