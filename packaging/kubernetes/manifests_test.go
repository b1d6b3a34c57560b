// SPDX-License-Identifier: Apache-2.0

// Package kubernetes has no code: its tests decode the manifests with the types of Kubernetes, and the compose
// file with those of compose. It is a module of its own, because nothing else needs these types.
package kubernetes

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
	strict "sigs.k8s.io/yaml"
)

// objects are the manifests by kind.
type objects struct {
	Namespace           corev1.Namespace
	ConfigMap           corev1.ConfigMap
	Job                 batchv1.Job
	Deployment          appsv1.Deployment
	Service             corev1.Service
	PodDisruptionBudget policyv1.PodDisruptionBudget
}

// read returns a file.
func read(t *testing.T, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// decode decodes the manifests. An unknown or repeated field is an error. As in kubectl, an anchor is known
// in its own document only.
func decode(t *testing.T, text []byte) (all objects, versions []string) {
	t.Helper()
	into := map[string]any{
		"v1/Namespace": &all.Namespace, "v1/ConfigMap": &all.ConfigMap, "batch/v1/Job": &all.Job,
		"apps/v1/Deployment": &all.Deployment, "v1/Service": &all.Service, "policy/v1/PodDisruptionBudget": &all.PodDisruptionBudget,
	}
	for documents := yaml.NewDocumentDecoder(io.NopCloser(bytes.NewReader(text))); ; {
		buffer := make([]byte, 64<<10)
		n, err := documents.Read(buffer)
		if errors.Is(err, io.EOF) {
			return all, versions
		}
		if err != nil {
			t.Fatal(err)
		}
		var head struct{ APIVersion, Kind string }
		if err := strict.Unmarshal(buffer[:n], &head); err != nil {
			t.Fatal(err)
		}
		object := into[head.APIVersion+"/"+head.Kind]
		if object == nil {
			t.Fatalf("%s %s is not expected, or comes twice", head.APIVersion, head.Kind)
		}
		delete(into, head.APIVersion+"/"+head.Kind)
		if err := strict.UnmarshalStrict(buffer[:n], object); err != nil {
			t.Errorf("%s: %v", head.Kind, err)
		}
		versions = append(versions, head.APIVersion+"/"+head.Kind)
	}
}

func TestManifests(t *testing.T) {
	text := read(t, "tamga.yaml")
	all, versions := decode(t, text)
	if len(versions) != 6 {
		t.Errorf("the manifests are %q", versions)
	}
	for name, pod := range map[string]corev1.PodSpec{"Job": all.Job.Spec.Template.Spec, "Deployment": all.Deployment.Spec.Template.Spec} {
		c := pod.Containers[0]
		switch {
		case pod.SecurityContext == nil || !*pod.SecurityContext.RunAsNonRoot || *pod.SecurityContext.RunAsUser != 65532:
			t.Errorf("%s: runs as root", name)
		case *pod.AutomountServiceAccountToken:
			t.Errorf("%s: gets a token of the cluster", name)
		case !*c.SecurityContext.ReadOnlyRootFilesystem || *c.SecurityContext.AllowPrivilegeEscalation || !slices.Contains(c.SecurityContext.Capabilities.Drop, "ALL"):
			t.Errorf("%s: the container is not restricted", name)
		}
		volumes := map[string]bool{}
		for _, v := range pod.Volumes {
			volumes[v.Name] = true
		}
		for _, m := range c.VolumeMounts {
			if !volumes[m.Name] {
				t.Errorf("%s: no volume %s", name, m.Name)
			}
		}
		if len(c.VolumeMounts) != len(volumes) {
			t.Errorf("%s: %d mounts of %d volumes", name, len(c.VolumeMounts), len(volumes))
		}
	}
	d := all.Deployment.Spec
	for name, labels := range map[string]map[string]string{
		"selector": d.Selector.MatchLabels, "Service": all.Service.Spec.Selector, "PodDisruptionBudget": all.PodDisruptionBudget.Spec.Selector.MatchLabels,
	} {
		if len(labels) == 0 {
			t.Errorf("%s: selects everything", name)
		}
		for k, v := range labels {
			if d.Template.Labels[k] != v || all.Job.Spec.Template.Labels[k] == v {
				t.Errorf("%s: %s=%s does not select the pods of the Deployment alone", name, k, v)
			}
		}
	}
	if all.Service.Spec.Ports[0].TargetPort.StrVal != d.Template.Spec.Containers[0].Ports[0].Name {
		t.Error("the Service has another port than the container")
	}
}

// TestUnknownField checks that a wrong manifest does not pass.
func TestUnknownField(t *testing.T) {
	var d appsv1.Deployment
	if err := strict.UnmarshalStrict([]byte("spec: {replica: 2}"), &d); err == nil || !strings.Contains(err.Error(), "replica") {
		t.Errorf("got %v", err)
	}
}

// TestConfiguration has the program check the configuration of the manifests and of the compose file. What
// the settings name does not exist here, so only the form is checked.
func TestConfiguration(t *testing.T) {
	all, _ := decode(t, read(t, "tamga.yaml"))
	for name, text := range map[string]string{"kubernetes": all.ConfigMap.Data["tamga.yaml"], "compose": string(read(t, "../compose/tamga.yaml"))} {
		file := filepath.Join(t.TempDir(), "tamga.yaml")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command("go", "run", "./cmd/tamga", "ready", "--config", file, "--set", "listen=127.0.0.1:0")
		cmd.Dir = "../.."
		out, err := cmd.CombinedOutput()
		if err == nil || !strings.Contains(string(out), "has no fixed port") {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
	}
}
