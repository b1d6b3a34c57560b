// Command tamga is the Tamga signing service and its tools in one program:
// serve answers the signing interface, sign and verify work from the command
// line, the others administer.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/alecthomas/kong"

	"tamga/internal/domain/notify"
)

// commands is the table of sub-commands. Each is a struct whose fields are its
// flags and whose Run does the work.
type commands struct {
	Serve    serveCommand    `cmd:"" help:"Run the service."`
	Sign     signCommand     `cmd:"" help:"Sign a file on a running server."`
	Verify   verifyCommand   `cmd:"" help:"Check a signature offline and say who signed, when, with what, and why it holds or not."`
	Migrate  migrateCommand  `cmd:"" help:"Bring the database to the schema of this release."`
	User     userCommand     `cmd:"" help:"Register, list, lock and unlock users, set passwords, end their tokens."`
	Group    groupCommand    `cmd:"" help:"Add and list groups of users."`
	Operator operatorCommand `cmd:"" help:"Add and list operators."`
	Cert     certCommand     `cmd:"" help:"Issue, list and revoke certificates of users."`
	Key      keyCommand      `cmd:"" help:"Import and export keys of users as PKCS #12 files; rotate the key that signs tokens."`
	Request  requestCommand  `cmd:"" help:"List, approve and reject requests for certificates."`
	TSP      tspCommand      `cmd:"" name:"tsp" help:"Administer the registered time-stamp services."`
	GOSTTLS  gostTLSCommand  `cmd:"" name:"gost-tls" help:"Set up and check the front end for GOST-TLS with client certificates."`
	Audit    auditCommand    `cmd:"" help:"Read the journal: who did what, on whom, with what outcome."`
	Phone    phoneCommand    `cmd:"" help:"Be a mobile device: register with a QR code, verify, poll."`
	Token    tokenCommand    `cmd:"" help:"Import, list, unlock and discard tokens that make one-time passwords."`
	Message  messageCommand  `cmd:"" help:"List messages to people, and have those tried again that were given up."`
	Policy   policyCommand   `cmd:"" help:"Show and set what users may do, what they confirm and what they are told of."`
	Webhook  webhookCommand  `cmd:"" help:"Add, list and remove systems that listen to events."`
	Config   configCommand   `cmd:"" help:"Check a configuration and print it with its defaults."`
	Version  versionCommand  `cmd:"" help:"Print the version of this program."`
}

// console is what a sub-command speaks to: never the process's own streams, so
// that a test can run any command.
type console struct {
	ctx            context.Context
	stdin          io.Reader
	stdout, stderr io.Writer
	terminal       bool // stderr is a terminal: progress is welcome
}

// exitCode is an error whose text was already shown.
type exitCode int

func (e exitCode) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

// usageError is a command line that cannot be understood: exit code 2.
type usageError struct{ err error }

func (e usageError) Error() string { return e.err.Error() + "; see tamga --help" }
func (e usageError) Unwrap() error { return e.err }

// stopSignal is why the context of a command ended.
type stopSignal struct{ os.Signal }

func (s stopSignal) Error() string { return "stopped by the signal " + s.String() }

// Is makes the end by a signal a cancellation like any other.
func (s stopSignal) Is(target error) bool { return target == context.Canceled }

func main() {
	ctx, cancel := context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		cause := stopSignal{<-signals}
		signal.Stop(signals) // a second signal ends the program at once
		cancel(cause)
	}()
	err := run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	var code exitCode
	var usage usageError
	switch {
	case errors.As(err, &code):
		os.Exit(int(code))
	case errors.As(err, &usage):
		fmt.Fprintln(os.Stderr, "tamga:", asStarted(err.Error()))
		os.Exit(2)
	case err != nil:
		fmt.Fprintln(os.Stderr, "tamga:", asStarted(err.Error()))
		os.Exit(1)
	}
}

// run finds the sub-command in args and runs it.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) error {
	var table commands
	exited := -1
	parser, err := kong.New(&table,
		kong.Name(program()),
		kong.Description("GOST electronic signatures as a service. Start with: "+asStarted("tamga serve --dev")),
		kong.Writers(stdout, stderr),
		kong.Vars{"notifiers": notify.NamesForUsers()},
		kong.Exit(func(code int) { exited = code }),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}),
		kong.ShortUsageOnError(),
	)
	if err != nil {
		return err
	}
	if len(args) == 0 {
		args = []string{"--help"}
	}
	parsed, err := parser.Parse(args)
	if exited >= 0 {
		return exitCode(exited)
	}
	if err != nil {
		return usageError{err}
	}
	return parsed.Run(&console{ctx: ctx, stdin: stdin, stdout: stdout, stderr: stderr, terminal: isTerminal(stderr)})
}
