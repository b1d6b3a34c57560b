// SPDX-License-Identifier: Apache-2.0

package setup

import (
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"tamga/internal/cli"
	"tamga/internal/config"
	"tamga/internal/domain/notify"
	"tamga/internal/domain/user"
	"tamga/internal/files"
)

// installed is what next says about the database.
type installed struct {
	group     string   // a group of users
	operators []string // logins, at least one
	// administrators are the logins of operators in pages.administrators.
	administrators []string
	// waiting is the issuing authority that waits for a certificate of an outside authority, and request is
	// the file of its request. Both are empty if none waits.
	waiting, request string
	outside          bool // an outside authority certifies the built-in one, now or soon
}

// name takes the logins of operators.
func (have *installed) name(operators []user.User, conf *config.Config) {
	for _, o := range operators {
		have.operators = append(have.operators, o.Login)
		if slices.Contains(conf.Pages.Administrators, o.ID) {
			have.administrators = append(have.administrators, o.Login)
		}
	}
}

// packageConfig is the configuration that tamga-admin of the packages uses.
const packageConfig = "/etc/tamga/tamga.yaml"

// program returns how a command line that administers the installation begins and ends. With a system user
// tamga-admin runs it, as this user: the files that a command of root makes would be closed to the service.
func (i *Init) program() (begin, end string) {
	if file, err := filepath.Abs(i.Config); i.User != "" && err == nil && file == packageConfig {
		return "tamga-admin", ""
	}
	return "tamga", " --config " + quoted(i.Config)
}

// next says what comes next.
func (i *Init) next(conf *config.Config, have installed, result *report) {
	say := func(text string, a ...any) { result.Next = append(result.Next, cli.Say(text, a...)) }
	program, with := i.program()
	for id := range conf.MasterKeys.Files {
		say("Copy master key %s (%s) to a place separate from the database, or make shares of it: %s key split -o DIR%s", id, files.Credential(conf.Path(conf.MasterKeys.Files[id])), program, with)
	}
	if have.waiting != "" {
		say("Send %s to the outside authority, and install the certificate that comes back, before users get certificates: %s ca install %s FILE%s", have.request, program, have.waiting, with)
	}
	if _, err := os.Stat(i.passwordFile()); err == nil {
		// The file is for the operator that init made. A repeated init may not know which of them it is.
		first := strings.Join(have.operators, " / ")
		if slices.Contains(have.operators, i.Operator) {
			first = i.Operator
		}
		if conf.Pages.Enabled {
			say("Give %s to operator %s, who signs in at %s, changes the password there, and delete the file", i.passwordFile(), first, conf.BaseURL())
		} else {
			say("Give %s to operator %s, who changes the password, and delete the file", i.passwordFile(), first)
		}
	}
	switch {
	case !conf.Pages.Enabled:
	case len(have.administrators) == 0:
		say("Name an operator in pages.administrators of %s, without whom no operator sees groups, the audit log and messages on the pages; this prints identifiers: %s operator list%s", i.Config, program, with)
	default:
		say("Operator %s sees groups, the audit log and messages on the pages, by pages.administrators in %s. Operators of the same group can act as this one", strings.Join(have.administrators, " / "), i.Config)
	}
	if len(conf.Users.SecondOperator) > 0 && len(have.operators) < 2 {
		say("Add a second operator, without whom what needs two cannot be done: %s operator add LOGIN --group %s%s", program, quoted(have.group), with)
	}
	if u, err := url.Parse(conf.BaseURL()); err == nil && u.Scheme == "https" && conf.TLS.CertificateFile == "" && len(conf.TrustedProxies) == 0 {
		say("Let a proxy with TLS in front of %s serve %s, and name it in trusted_proxies", conf.Listen, conf.BaseURL())
	}
	if !slices.ContainsFunc(conf.Notifiers(), notify.Plugin.Configured) {
		say("Configure messages.mail or an SMS service, so that users get codes")
	}
	say("Check the installation: %s doctor%s", program, with)
	if i.User != "" {
		say("Start the service: systemctl enable --now tamga")
	} else {
		say("Start the service: %s serve%s", program, with)
	}
	switch {
	case have.outside:
		say("Give the root of the outside authority to those who verify signatures")
	case conf.Certificates.BuiltIn:
		say("Give the root certificates to those who verify signatures: %s ca export%s", program, with)
	}
}

// quoted returns a word of a command line. What has a meaning for a shell is put between quotes.
func quoted(word string) string {
	if word != "" && !strings.ContainsFunc(word, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("-_.,/:@+", r)
	}) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
