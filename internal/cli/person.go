// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"os"
	"os/user"
	"strconv"
	"strings"

	"tamga/internal/domain/approval"
	"tamga/internal/domain/audit"
	"tamga/sig"
)

// Administrator returns the caller of commands for the audit log. Its actor is the person at the keyboard.
func (c *Console) Administrator() audit.Principal {
	p := approval.Administrator
	p.Actor = c.Person
	return p
}

// PersonOf returns the person who runs this process: who logged in to the system, which sudo and su do not change,
// and what sudo says of who called it. getenv is os.Getenv.
func PersonOf(getenv func(string) string) string {
	login, _ := os.ReadFile("/proc/self/loginuid") // Linux only; a system without audit has none
	return personOf(strings.TrimSpace(string(login)), os.Getuid(), getenv("SUDO_USER"), nameOfUser)
}

// noLogin is the login uid of a process that belongs to no login, such as one of a timer.
const noLogin = "4294967295"

func personOf(login string, uid int, sudo string, nameOf func(uid string) string) string {
	person := ""
	if login != "" && login != noLogin {
		person = nameOf(login)
	}
	// The variable is what the caller says; the system keeps the login.
	if sudo = sig.Printable(sudo, 64, '\uFFFD'); sudo != "" && sudo != person {
		if person != "" {
			person += ", "
		}
		person += "SUDO_USER " + sudo
	}
	if person == "" && uid >= 0 { // -1: no numbers on this system
		person = nameOf(strconv.Itoa(uid))
	}
	return person
}

// nameOfUser returns the name and the number of a user of the system.
func nameOfUser(uid string) string {
	if u, err := user.LookupId(uid); err == nil {
		return u.Username + " (" + uid + ")"
	}
	return "uid " + uid
}
