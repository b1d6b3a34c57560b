// SPDX-License-Identifier: Apache-2.0

// Package kubernetes has no code: its tests decode the manifests with the types of Kubernetes, and the compose
// file with those of compose. It is a module of its own, because nothing else needs these types.
package kubernetes

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	strict "sigs.k8s.io/yaml"
)

// objects are the manifests by kind, and policies by their names.
type objects struct {
	Namespace           corev1.Namespace
	ConfigMap           corev1.ConfigMap
	Job                 batchv1.Job
	Deployment          appsv1.Deployment
	Service             corev1.Service
	PodDisruptionBudget policyv1.PodDisruptionBudget
	Claim               corev1.PersistentVolumeClaim
	CronJob             batchv1.CronJob
	Ingress             networkingv1.Ingress
	Policy, Deny        networkingv1.NetworkPolicy
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

// build returns what kustomize makes of a directory.
func build(t *testing.T, dir string) (all objects) {
	t.Helper()
	made, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), dir)
	if err != nil {
		t.Fatal(err)
	}
	text, err := made.AsYaml()
	if err != nil {
		t.Fatal(err)
	}
	into := map[string]any{
		"v1 Namespace tamga": &all.Namespace, "v1 ConfigMap tamga": &all.ConfigMap, "batch/v1 Job tamga-migrate": &all.Job,
		"apps/v1 Deployment tamga": &all.Deployment, "v1 Service tamga": &all.Service, "policy/v1 PodDisruptionBudget tamga": &all.PodDisruptionBudget,
		"v1 PersistentVolumeClaim tamga-backups": &all.Claim, "batch/v1 CronJob tamga-backup": &all.CronJob,
		"networking.k8s.io/v1 Ingress tamga": &all.Ingress, "networking.k8s.io/v1 NetworkPolicy tamga": &all.Policy, "networking.k8s.io/v1 NetworkPolicy deny": &all.Deny,
	}
	for _, document := range bytes.Split(text, []byte("\n---\n")) {
		var head struct {
			APIVersion, Kind string
			Metadata         struct{ Name, Namespace string }
		}
		if err := strict.Unmarshal(document, &head); err != nil {
			t.Fatal(err)
		}
		name := head.Metadata.Name
		if head.Kind == "ConfigMap" { // its name has a digest of the contents
			name, _, _ = strings.Cut(name, "-")
		}
		what := head.APIVersion + " " + head.Kind + " " + name
		object := into[what]
		if object == nil {
			t.Fatalf("%s is not expected, or comes twice", what)
		}
		delete(into, what)
		if err := strict.UnmarshalStrict(document, object); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		if head.Kind != "Namespace" && head.Metadata.Namespace != "tamga" {
			t.Errorf("%s is in the namespace %q", what, head.Metadata.Namespace)
		}
	}
	for what := range into {
		t.Errorf("%s: no %s", dir, what)
	}
	return all
}

// pods returns the descriptions of all pods.
func (o *objects) pods() map[string]corev1.PodSpec {
	return map[string]corev1.PodSpec{
		"Job": o.Job.Spec.Template.Spec, "Deployment": o.Deployment.Spec.Template.Spec, "CronJob": o.CronJob.Spec.JobTemplate.Spec.Template.Spec,
	}
}

// TestManifests checks what the manifests promise, in the base and in the example of an overlay.
func TestManifests(t *testing.T) {
	t.Parallel()
	for _, dir := range []string{"base", "overlays/example"} {
		all := build(t, dir)
		for name, pod := range all.pods() {
			c := pod.Containers[0]
			switch {
			case pod.SecurityContext == nil || !*pod.SecurityContext.RunAsNonRoot || *pod.SecurityContext.RunAsUser != 65532:
				t.Errorf("%s: %s: runs as root", dir, name)
			case *pod.AutomountServiceAccountToken:
				t.Errorf("%s: %s: gets a token of the cluster", dir, name)
			case !*c.SecurityContext.ReadOnlyRootFilesystem || *c.SecurityContext.AllowPrivilegeEscalation || !slices.Contains(c.SecurityContext.Capabilities.Drop, "ALL"):
				t.Errorf("%s: %s: the container is not restricted", dir, name)
			}
			volumes := map[string]bool{}
			for _, v := range pod.Volumes {
				volumes[v.Name] = true
				if v.ConfigMap != nil && v.ConfigMap.Name != all.ConfigMap.Name {
					t.Errorf("%s: %s has the configuration %q, want %q", dir, name, v.ConfigMap.Name, all.ConfigMap.Name)
				}
				if v.Secret != nil && *v.Secret.DefaultMode&0o7 != 0 {
					t.Errorf("%s: %s: others can read the secrets", dir, name)
				}
			}
			for _, m := range c.VolumeMounts {
				if !volumes[m.Name] {
					t.Errorf("%s: %s: no volume %s", dir, name, m.Name)
				}
			}
			if len(c.VolumeMounts) != len(volumes) {
				t.Errorf("%s: %s: %d mounts of %d volumes", dir, name, len(c.VolumeMounts), len(volumes))
			}
		}
		d := all.Deployment.Spec
		for name, labels := range map[string]map[string]string{
			"selector": d.Selector.MatchLabels, "Service": all.Service.Spec.Selector, "PodDisruptionBudget": all.PodDisruptionBudget.Spec.Selector.MatchLabels,
			"NetworkPolicy": all.Policy.Spec.PodSelector.MatchLabels,
		} {
			if len(labels) == 0 {
				t.Errorf("%s: %s: selects everything", dir, name)
			}
			for k, v := range labels {
				if d.Template.Labels[k] != v || all.Job.Spec.Template.Labels[k] == v {
					t.Errorf("%s: %s: %s=%s does not select the pods of the Deployment alone", dir, name, k, v)
				}
			}
		}
		if all.Service.Spec.Ports[0].TargetPort.StrVal != d.Template.Spec.Containers[0].Ports[0].Name {
			t.Errorf("%s: the Service has another port than the container", dir)
		}
		if all.Job.Spec.TTLSecondsAfterFinished == nil || all.Job.Spec.Template.Spec.Containers[0].Args[0] != "migrate" || all.Job.Spec.Template.Spec.Containers[0].Image != d.Template.Spec.Containers[0].Image {
			t.Errorf("%s: the Job does not migrate with the image of the Deployment, or never goes", dir)
		}
		if len(all.Deny.Spec.PodSelector.MatchLabels) != 0 || len(all.Deny.Spec.Ingress) != 0 {
			t.Errorf("%s: other pods can be reached", dir)
		}
	}
}

// TestOverlay checks what the example changes, and that another configuration starts other pods.
func TestOverlay(t *testing.T) {
	t.Parallel()
	base, example := build(t, "base"), build(t, "overlays/example")
	if base.ConfigMap.Name == example.ConfigMap.Name || !strings.Contains(example.ConfigMap.Data["tamga.yaml"], "sign.example.net") {
		t.Errorf("the configuration of the overlay is %s", example.ConfigMap.Name)
	}
	if host := example.Ingress.Spec.Rules[0].Host; host != "sign.example.net" || example.Ingress.Spec.TLS[0].Hosts[0] != host {
		t.Errorf("the ingress is for %q", host)
	}
	for name, pod := range example.pods() {
		if image := pod.Containers[0].Image; !strings.HasPrefix(image, "registry.example.net/signing/tamga") || !strings.HasSuffix(image, ":1.2.4") {
			t.Errorf("%s: the image is %s", name, image)
		}
	}
	if *example.Deployment.Spec.Replicas != 3 {
		t.Errorf("%d pods", *example.Deployment.Spec.Replicas)
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
	for name, text := range map[string]string{
		"base": build(t, "base").ConfigMap.Data["tamga.yaml"], "overlay": build(t, "overlays/example").ConfigMap.Data["tamga.yaml"], "compose": string(read(t, "../compose/tamga.yaml")),
	} {
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
