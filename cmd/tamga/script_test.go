// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"tamga/internal/app/dev"
	"tamga/internal/tamgatest"
)

// TestScripts runs the scripts of testdata, which read like a manual.
func TestScripts(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir: "testdata",
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"waitready": waitReady,
			"devenv":    devEnvironment,
			"keep":      keep,
		},
		Setup: func(env *testscript.Env) error {
			// Secrets are files that their owner alone may read.
			if err := os.Chmod(env.Getenv("WORK")+"/password", 0o600); !errors.Is(err, fs.ErrNotExist) {
				return err
			}
			return nil
		},
	})
}

// waitReady DIR waits until the server started with --dev --data DIR is ready.
func waitReady(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: waitready DIR")
	}
	ctx, cancel := context.WithTimeout(context.Background(), tamgatest.Patience)
	defer cancel()
	// Nothing in a script tells that another process is ready but asking it.
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		if d, err := dev.Read(ts.MkAbs(args[0])); err == nil && answers(ctx, d) {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			ts.Fatalf("the server was not ready in %v", tamgatest.Patience)
		}
	}
}

func answers(ctx context.Context, d *dev.Description) bool {
	u, err := url.Parse(d.BaseURL)
	if err != nil {
		return false
	}
	request, err := http.NewRequestWithContext(ctx, "GET", u.Scheme+"://"+u.Host+"/readyz", nil)
	if err != nil {
		return false
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return false
	}
	response.Body.Close()
	return response.StatusCode == http.StatusOK
}

// devEnvironment DIR sets the addresses and names of dev.json in the environment.
func devEnvironment(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: devenv DIR")
	}
	d, err := dev.Read(ts.MkAbs(args[0]))
	ts.Check(err)
	for name, value := range map[string]string{
		"IDP_URL": d.IDPURL, "TOKEN_URL": d.TokenURL, "CAPTURED_MESSAGES_URL": d.CapturedURL, "RESOURCE": d.Resource,
		"CLIENT_ID": d.ClientID, "OPERATOR_PASSWORD": d.Operator.Password,
	} {
		ts.Setenv(name, value)
	}
}

// keep REGEXP NAME sets a variable to what the group of the expression matches in the
// output of the last program.
func keep(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: keep REGEXP NAME")
	}
	found := regexp.MustCompile(args[0]).FindStringSubmatch(ts.ReadFile("stdout"))
	if len(found) != 2 {
		ts.Fatalf("no match of %s in the output", args[0])
	}
	ts.Setenv(args[1], found[1])
}
