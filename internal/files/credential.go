// SPDX-License-Identifier: Apache-2.0

package files

import (
	"os"
	"path/filepath"
	"runtime"
)

// credentials is the variable by which a service manager names the directory with the secrets that it
// gives to this process alone: systemd's LoadCredential, or the secrets of a container.
const credentials = "CREDENTIALS_DIRECTORY"

// CredentialPrefix begins the names of credentials that systemd reads from a directory with the unit's
// line LoadCredential=secrets:DIRECTORY.
const CredentialPrefix = "secrets_"

// Credential returns the file to read for a secret. A file of the same name in the directory of
// credentials comes first. Without one it is the given file.
func Credential(file string) string {
	dir := os.Getenv(credentials)
	if dir == "" {
		return file
	}
	for _, name := range []string{filepath.Base(file), CredentialPrefix + filepath.Base(file)} {
		if found := filepath.Join(dir, name); exists(found) {
			return found
		}
	}
	return file
}

func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}

// readableByOthers reports whether other users can read a file. The mode of a credential does not say so:
// its directory is closed, and the mode shows the mask of an access control list or the group of a
// container.
func readableByOthers(file string, mode os.FileMode) bool {
	dir := os.Getenv(credentials)
	return ModeOfOthers(mode) != 0 && (dir == "" || filepath.Dir(file) != filepath.Clean(dir))
}

// ModeOfOthers returns what a mode permits to the group and to other users. On Windows it permits
// nothing: modes there are made up from one attribute and do not show the access control list.
func ModeOfOthers(mode os.FileMode) os.FileMode {
	if runtime.GOOS == "windows" {
		return 0
	}
	return mode.Perm() & 0o077
}
