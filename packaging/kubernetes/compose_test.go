// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/compose-spec/compose-go/v2/loader"
	"github.com/compose-spec/compose-go/v2/types"
	strict "sigs.k8s.io/yaml"
)

// compose loads a compose file as docker compose does.
func compose(t *testing.T, file types.ConfigFile) (*types.Project, error) {
	t.Helper()
	return loader.LoadWithContext(t.Context(), types.ConfigDetails{
		WorkingDir: t.TempDir(), ConfigFiles: []types.ConfigFile{file}, Environment: types.Mapping{"TAMGA_VERSION": "1.2.3"},
	}, func(o *loader.Options) { o.Profiles = []string{"*"} })
}

// TestCompose loads the compose file and compares it with its configuration.
func TestCompose(t *testing.T) {
	project, err := compose(t, types.ConfigFile{Filename: "../compose/compose.yaml"})
	if err != nil {
		t.Fatal(err)
	}
	var settings struct {
		Listen   string `json:"listen"`
		Database string `json:"database"`
		Spool    string `json:"spool_dir"`
		Blobs    string `json:"blob_dir"`
		Keys     struct {
			Files map[string]string `json:"files"`
		} `json:"master_keys"`
	}
	if err := strict.Unmarshal(read(t, "../compose/tamga.yaml"), &settings); err != nil {
		t.Fatal(err)
	}
	if len(project.Services) != 2 {
		t.Fatalf("services %q", project.ServiceNames())
	}
	for name, s := range project.Services {
		if s.Image != "tamga:1.2.3" || s.User != "65532:65532" || !s.ReadOnly || s.Privileged ||
			!slices.Equal(s.CapDrop, []string{"ALL"}) || !slices.Equal(s.SecurityOpt, []string{"no-new-privileges:true"}) {
			t.Errorf("%s is not closed: %+v", name, s)
		}
		mounted := map[string]bool{} // paths, and whether they can be written
		for _, v := range s.Volumes {
			mounted[v.Target] = !v.ReadOnly
		}
		if writable, has := mounted["/etc/tamga/tamga.yaml"]; !has || writable {
			t.Errorf("%s has the configuration: %t, and can write it: %t", name, has, writable)
		}
		for _, dir := range []string{path.Dir(strings.TrimPrefix(settings.Database, "sqlite:")), path.Dir(settings.Spool), path.Dir(settings.Blobs)} {
			if !mounted[dir] {
				t.Errorf("%s cannot write %s", name, dir)
			}
		}
		var secrets []string
		for _, secret := range s.Secrets {
			secrets = append(secrets, secret.Target)
			if _, has := project.Secrets[secret.Source]; !has {
				t.Errorf("%s: no secret %s", name, secret.Source)
			}
		}
		for _, file := range settings.Keys.Files {
			if !slices.Contains(secrets, file) || *s.Environment["CREDENTIALS_DIRECTORY"] != path.Dir(file) {
				t.Errorf("%s has the secrets %q, not %s", name, secrets, file)
			}
		}
	}
	s := project.Services["tamga"]
	if s.HealthCheck == nil || !slices.Equal(s.HealthCheck.Test, []string{"CMD", "/usr/bin/tamga", "ready", "--config", "/etc/tamga/tamga.yaml"}) {
		t.Errorf("health check %+v", s.HealthCheck)
	}
	if s.StopGracePeriod == nil || time.Duration(*s.StopGracePeriod) < time.Minute {
		t.Errorf("the service has %v to stop, which takes drain_time and stop_time", s.StopGracePeriod)
	}
	if len(s.Ports) != 1 || !strings.HasSuffix(settings.Listen, ":8080") || s.Ports[0].Target != 8080 || s.Ports[0].HostIP != "127.0.0.1" {
		t.Errorf("%s is published as %+v", settings.Listen, s.Ports)
	}

	// The judge refuses what it does not know.
	wrong := strings.Replace(string(read(t, "../compose/compose.yaml")), "stop_grace_period", "stop_grace", 1)
	if _, err := compose(t, types.ConfigFile{Filename: "compose.yaml", Content: []byte(wrong)}); err == nil || !strings.Contains(err.Error(), "stop_grace") {
		t.Errorf("an unknown field: %v", err)
	}
}
