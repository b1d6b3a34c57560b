// SPDX-License-Identifier: Apache-2.0

// Package program is the whole program as a function. It has the table of sub-commands, signals and exit
// codes. Main is the body of cmd/tamga. Run runs a command line inside of a test.
//
// The sub-commands are in the packages below internal/cli, and the wiring of the service is in
// internal/app.
package program

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"reflect"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"

	"tamga/internal/app"
	"tamga/internal/cli"
	"tamga/internal/cli/admin"
	"tamga/internal/cli/client"
	"tamga/internal/cli/gosttls"
	"tamga/internal/cli/phone"
	"tamga/internal/cli/serve"
	"tamga/internal/cli/setup"
	"tamga/internal/cli/verify"
	"tamga/internal/domain/notify"
)

// commands is the table of sub-commands. Each is a struct whose fields are its flags and whose method Run
// does the work. The tag whole marks those that read the model of all sub-commands.
type commands struct {
	Init      setup.Init          `cmd:"" help:"Make an installation: configuration, secrets, database, authority, operator."`
	Doctor    setup.Doctor        `cmd:"" help:"Look for faults of an installation and say what to do."`
	Serve     serve.Command       `cmd:"" help:"Run the service."`
	Ready     serve.Ready         `cmd:"" help:"Ask the server of a configuration whether it is ready."`
	Sign      client.Sign         `cmd:"" help:"Sign a file with a key on a running server."`
	Verify    verify.Command      `cmd:"" help:"Verify the signatures of files offline and explain the result."`
	Enhance   client.Enhance      `cmd:"" help:"Raise the signatures of files so that they stay valid longer, with a running server or without."`
	Encrypt   client.Encrypt      `cmd:"" help:"Encrypt files for the owners of certificates, with a running server or without."`
	Decrypt   client.Decrypt      `cmd:"" help:"Decrypt files with a key on a running server, or with a key from a file."`
	Card      cardCommand         `cmd:"" help:"Make and open cards: one PDF with a signed document, its marks and its signatures."`
	Migrate   admin.Migrate       `cmd:"" help:"Bring the database to the schema of this release."`
	Backup    admin.Backup        `cmd:"" help:"Write a backup of the database and the stored documents."`
	Restore   admin.Restore       `cmd:"" help:"Restore a backup, and open the restored service."`
	User      admin.User          `cmd:"" help:"Register, list, lock, unlock and delete users; set passwords; revoke tokens."`
	Import    admin.Import        `cmd:"" help:"Import users, contacts and certificates from CSV or JSON."`
	Group     admin.Group         `cmd:"" help:"Add, list, rename and delete groups of users."`
	Directory admin.Directory     `cmd:"" help:"List and synchronize directories (LDAP, Active Directory), and unlink their users."`
	Operator  admin.Operator      `cmd:"" help:"Add, list and delete operators, and set their groups and certificates."`
	Cert      admin.Cert          `cmd:"" help:"Issue, list and revoke certificates of users."`
	CA        admin.CA            `cmd:"" name:"ca" help:"List, export, renew and roll over the built-in authority."`
	Key       admin.Key           `cmd:"" help:"Replace and reseal under master keys, make shares of them; import and export keys of users; rotate the key that signs access tokens and the one that devices know."`
	Request   admin.Request       `cmd:"" help:"List, approve and reject requests for certificates."`
	Approval  admin.Approval      `cmd:"" help:"List, approve and refuse requests of operators that need a second operator."`
	Operation admin.Operation     `cmd:"" help:"Export the evidence of a confirmed operation."`
	TrustList admin.TrustList     `cmd:"" name:"trust-list" help:"Import the list of accredited certification authorities, by which reports say which signatures are qualified."`
	TSP       admin.TSP           `cmd:"" name:"tsp" help:"Add, list, remove and check registered time-stamp services."`
	GOSTTLS   gosttls.Command     `cmd:"" name:"gost-tls" help:"Set up and check HAProxy as a front end for GOST-TLS with client certificates."`
	Audit     admin.Audit         `cmd:"" help:"Print the audit log: the caller, operation, object and outcome of each request."`
	Phone     phone.Command       `cmd:"" help:"Act as a mobile device: register with a QR code, verify, poll."`
	Token     admin.Token         `cmd:"" help:"Import, list, unlock and delete tokens for one-time passwords (OATH)."`
	Message   admin.Message       `cmd:"" help:"List messages to users, and send failed ones again."`
	Policy    admin.Policy        `cmd:"" help:"Show and set the policies of users: denied actions, confirmations, notifications."`
	Webhook   admin.Webhook       `cmd:"" help:"Add, list, change, test and remove webhooks: systems that receive events."`
	Config    admin.Config        `cmd:"" help:"Check a configuration and print it with its defaults."`
	Support   admin.SupportBundle `cmd:"" name:"support-bundle" help:"Collect what a report of a fault needs."`
	Version   cli.Version         `cmd:"" help:"Print the version of this program."`
	Help      helpCommand         `cmd:"" help:"Show the help of a command."`

	Completion completion `cmd:"" help:"Print the completion script of a shell."`
	Manual     manual     `cmd:"" whole:"" help:"Print a manual page (man) of the program or of a command."`
	Complete   complete   `cmd:"" whole:"" hidden:"" help:"Print the words that complete a command line."`

	ShowVersion versionFlag `name:"version" help:"Print the version of this program."`
}

// cardCommand has the sub-commands of cards, of which one asks a server and the other verifies.
type cardCommand struct {
	Make client.CardMake `cmd:"" help:"Make the card of a signed document."`
	Open verify.CardOpen `cmd:"" help:"Give the files of a card back, and verify them offline."`
}

// helpCommand is the sub-command help. run replaces "help COMMAND" with "COMMAND --help" before the
// command line is parsed.
type helpCommand struct {
	Command []string `arg:"" optional:"" help:"Command to explain."`
}

// versionFlag is --version, which is valid without a sub-command.
type versionFlag bool

// BeforeReset prints the version and ends the program. Kong calls it before it asks for a sub-command.
func (versionFlag) BeforeReset(k *kong.Kong, vars kong.Vars) error {
	fmt.Fprintln(k.Stdout, vars["version"])
	k.Exit(0)
	return nil
}

// Main runs the command line of this process and returns its exit code. version is the version of the
// program. The first interrupt or termination signal cancels the command, the second ends the process.
func Main(version string) int {
	ctx, cancel := context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		cause := app.StopSignal{Signal: <-signals}
		signal.Stop(signals) // a second signal ends the program at once
		cancel(cause)
	}()
	language := languageOf(os.Getenv)
	err := run(ctx, version, language, cli.PersonOf(os.Getenv), os.Args[1:], os.Stdin, os.Stdout, os.Stderr, cli.OpenTerminal)
	var code cli.ExitCode
	if err != nil && !errors.As(err, &code) { // the text of an ExitCode has been printed
		fmt.Fprintln(os.Stderr, "tamga:", started(version).AsStarted(cli.Harmless(sentence(err, language), os.Args[1:])))
	}
	return ExitCode(err)
}

// commandOf returns the command that was found before kong found an error, "" for none.
func commandOf(err error) string {
	var failed *kong.ParseError
	if !errors.As(err, &failed) || failed.Context == nil {
		return ""
	}
	if node := failed.Context.Selected(); node != nil {
		return node.Path()
	}
	return ""
}

// ExitCode returns the exit code of the program for the error of a command.
func ExitCode(err error) int {
	var code cli.ExitCode
	var usage cli.UsageError
	switch {
	case errors.As(err, &code):
		return int(code)
	case errors.As(err, &usage):
		return 2
	case errors.As(err, new(cli.ConfigError)):
		return 78
	case err != nil:
		return 1
	}
	return 0
}

const description = "GOST electronic signatures as a service. Start with: tamga serve --dev"

// started returns the running program with the names of its sub-commands.
func started(version string) *cli.Program {
	var names []string
	for field := range reflect.TypeFor[commands]().Fields() {
		if name := nameOf(field); name != "" {
			names = append(names, name)
		}
	}
	return cli.NewProgram(version, names)
}

// nameOf returns the name of the sub-command of a field of commands, or "" for a flag.
func nameOf(field reflect.StructField) string {
	if _, command := field.Tag.Lookup("cmd"); !command {
		return ""
	}
	return cmp.Or(field.Tag.Get("name"), strings.ToLower(field.Name))
}

// tableFor returns the table that kong needs for a command line: only the sub-command that it names, because
// a model of all of them takes most of the time of a short command. It returns the whole table if the command
// line names none, or one with the tag whole.
func tableFor(args []string) any {
	var fields []reflect.StructField
	found := false
	for field := range reflect.TypeFor[commands]().Fields() {
		name := nameOf(field)
		if name == "" {
			fields = append(fields, field)
		} else if len(args) > 0 && name == args[0] {
			fields = append(fields, field)
			_, whole := field.Tag.Lookup("whole")
			found = !whole
		}
	}
	if !found {
		return new(commands)
	}
	return reflect.New(reflect.StructOf(fields)).Interface()
}

// Run runs the sub-command in args. Without args it prints the help. A command cannot ask for a secret:
// only Main has a terminal.
func Run(ctx context.Context, version string, args []string, stdin io.Reader, stdout, stderr io.Writer) error {
	return run(ctx, version, "", "", args, stdin, stdout, stderr, nil)
}

// run is Run with a language, "ru" or "" for English, a person, and a terminal for secrets; see cli.Console.
func run(ctx context.Context, version, language, person string, args []string, stdin io.Reader, stdout, stderr io.Writer, secrets func() (*os.File, error)) error {
	// Manual pages are made in English, once for all readers of a package.
	translated := language == "ru" && (len(args) == 0 || args[0] != "manual")
	switch {
	case len(args) == 0:
		args = []string{"--help"}
	case args[0] == "help":
		args = append(args[1:len(args):len(args)], "--help")
	}
	program := started(version)
	exited := -1
	vars := kong.Vars{"notifiers": notify.NamesForUsers(), "version": cli.VersionText(version)}
	options := []kong.Option{
		kong.Name(program.Name),
		kong.Description(description),
		kong.Writers(stdout, stderr),
		vars,
		kong.Exit(func(code int) { exited = code }),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}),
		kong.ShortUsageOnError(),
	}
	if translated {
		options = append(options, kong.Help(russianHelp))
	}
	parser, err := kong.New(tableFor(args), options...)
	if err != nil {
		return err
	}
	var words map[string]string
	var faults func(string) string
	if language == "ru" {
		words, faults = russian(), faultIn
	}
	title := examplesTitle
	if translated {
		inRussian(parser.Model, vars)
		title = russian()[examplesTitle]
	}
	parser.Model.Help = program.AsStarted(parser.Model.Help)
	addExamples(parser.Model, title, program.AsStarted)
	parsed, err := parser.Parse(args)
	if exited >= 0 {
		return cli.ExitCode(exited)
	}
	if err != nil {
		return cli.UsageError{Err: err, Command: commandOf(err)}
	}
	parsed.Bind(parser.Model)
	return parsed.Run(&cli.Console{
		Context: ctx, Stdin: stdin, Stdout: stdout, Stderr: stderr,
		Terminal: cli.IsTerminal(stderr), Secrets: secrets, Program: program, Examine: setup.Examine, Person: person, Language: language, Words: words, Faults: faults, Args: args,
	})
}
