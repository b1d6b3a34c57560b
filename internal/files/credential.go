// SPDX-License-Identifier: Apache-2.0

package files

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
)

// credentials is the variable by which a service manager names the directory with the secrets that it
// gives to this process alone: systemd's LoadCredential, or the secrets of a container.
const credentials = "CREDENTIALS_DIRECTORY"

// CredentialPrefix begins the names of credentials that systemd reads from a directory with the unit's
// line LoadCredential=secrets:DIRECTORY.
const CredentialPrefix = "secrets_"

// refreshed is the variable for a directory with secrets that are newer than the credentials: systemd copies
// credentials at the start alone, and a reload puts the present secrets there.
const refreshed = "TAMGA_REFRESHED_SECRETS"

// Credential returns the file to read for a secret. A file of the same name in the directory of refreshed secrets comes
// first, then one in the directory of credentials. Without them it is the given file.
func Credential(file string) string {
	for _, variable := range []string{refreshed, credentials} {
		dir := os.Getenv(variable)
		if dir == "" {
			continue
		}
		for _, name := range []string{filepath.Base(file), CredentialPrefix + filepath.Base(file)} {
			if found := filepath.Join(dir, name); exists(found) {
				return found
			}
		}
	}
	return file
}

func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}

// readableByOthers reports whether other users can read a file. A group of this process may read it: containers get
// their secrets so. The mode of a credential says nothing: its directory is closed, and the mode shows the mask of an
// access control list.
func readableByOthers(file string, info os.FileInfo) bool {
	dir := os.Getenv(credentials)
	if dir != "" && filepath.Dir(file) == filepath.Clean(dir) {
		return false
	}
	mode := ModeOfOthers(info.Mode())
	if mode&0o037 == 0 && mode != 0 && ownGroup(info) {
		return false
	}
	return mode != 0
}

// OpenToOthers reports whether other users can read a secret at the place that the configuration names. It returns false
// for a file that this process cannot find, such as one in a directory that is closed to it.
func OpenToOthers(file string) bool {
	info, err := os.Stat(file)
	return err == nil && readableByOthers(file, info)
}

// ownGroup reports whether the group of a file is one of this process, and not that of root.
func ownGroup(info os.FileInfo) bool {
	_, gid, known := ownerOf(info)
	if !known || gid == 0 {
		return false
	}
	groups, err := os.Getgroups()
	return gid == os.Getegid() || err == nil && slices.Contains(groups, gid)
}

// Replaceable reports whether other users can replace files in a directory. They cannot on a read-only file system,
// or where the sticky bit leaves files to their owners, as in volumes of secrets of containers.
func Replaceable(dir string, info os.FileInfo) bool {
	return ModeOfOthers(info.Mode())&0o022 != 0 && info.Mode()&os.ModeSticky == 0 && !readOnly(dir)
}

// ModeOfOthers returns what a mode permits to the group and to other users. On Windows it permits
// nothing: modes there are made up from one attribute and do not show the access control list.
func ModeOfOthers(mode os.FileMode) os.FileMode {
	if runtime.GOOS == "windows" {
		return 0
	}
	return mode.Perm() & 0o077
}

// MayEnter reports whether the mode of a directory lets a user with these groups enter it.
func MayEnter(info os.FileInfo, uid int, groups map[int]bool) bool {
	owner, group, known := ownerOf(info)
	switch {
	case !known:
		return true
	case owner == uid:
		return info.Mode()&0o100 != 0
	case groups[group]:
		return info.Mode()&0o010 != 0
	}
	return info.Mode()&0o001 != 0
}
