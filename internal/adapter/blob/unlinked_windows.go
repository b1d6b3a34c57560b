// SPDX-License-Identifier: Apache-2.0

package blob

import (
	"crypto/rand"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/windows"
)

// createUnlinked makes a file that the system removes when it is closed, also by the end of the process.
func createUnlinked(dir string) (*os.File, error) {
	name := strings.Replace(pattern, "*", rand.Text(), 1)
	const flags = os.O_RDWR | os.O_CREATE | os.O_EXCL | windows.FILE_FLAG_DELETE_ON_CLOSE
	return os.OpenFile(filepath.Join(dir, name), flags, 0o600)
}

// inUse reports whether a file was not removed because a process has it open.
func inUse(err error) bool { return errors.Is(err, windows.ERROR_SHARING_VIOLATION) }
