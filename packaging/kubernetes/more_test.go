// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	strict "sigs.k8s.io/yaml"
)

// each decodes the documents of a file. An unknown field is an error.
func each(t *testing.T, name string, into ...any) {
	t.Helper()
	documents := bytes.Split(read(t, name), []byte("\n---\n"))
	if len(documents) != len(into) {
		t.Fatalf("%s has %d documents, want %d", name, len(documents), len(into))
	}
	for n, text := range documents {
		if err := strict.UnmarshalStrict(text, into[n]); err != nil {
			t.Errorf("%s, document %d: %v", name, n+1, err)
		}
	}
}

// TestBackupManifest compares the CronJob with the Deployment that it backs up.
func TestBackupManifest(t *testing.T) {
	t.Parallel()
	all, _ := decode(t, read(t, "tamga.yaml"))
	var claim corev1.PersistentVolumeClaim
	var job batchv1.CronJob
	each(t, "backup.yaml", &claim, &job)
	pod, served := job.Spec.JobTemplate.Spec.Template.Spec, all.Deployment.Spec.Template.Spec
	if claim.Kind != "PersistentVolumeClaim" || job.Kind != "CronJob" || job.Namespace != all.Deployment.Namespace || job.Spec.ConcurrencyPolicy != batchv1.ForbidConcurrent {
		t.Errorf("the objects are %s and %s of %s", claim.Kind, job.Kind, job.Namespace)
	}
	c := pod.Containers[0]
	if !slices.Equal(c.Args[:3], []string{"backup", "/backups", "--keep"}) || *pod.SecurityContext.RunAsUser != *served.SecurityContext.RunAsUser {
		t.Errorf("the container runs %q as %d", c.Args, *pod.SecurityContext.RunAsUser)
	}
	mounts := map[string]string{}
	for _, m := range c.VolumeMounts {
		mounts[m.Name] = m.MountPath
	}
	for _, m := range served.Containers[0].VolumeMounts {
		if mounts[m.Name] != m.MountPath {
			t.Errorf("%s is at %q, in the Deployment at %q", m.Name, mounts[m.Name], m.MountPath)
		}
	}
	for _, v := range pod.Volumes {
		if v.Name == "backups" && v.PersistentVolumeClaim.ClaimName != claim.Name {
			t.Errorf("the claim is %q", v.PersistentVolumeClaim.ClaimName)
		}
	}
}

// TestNetworkManifests checks that the way in leads to the service of the pods, without the metrics.
func TestNetworkManifests(t *testing.T) {
	t.Parallel()
	all, _ := decode(t, read(t, "tamga.yaml"))
	var policy networkingv1.NetworkPolicy
	var ingress networkingv1.Ingress
	each(t, "network.yaml", &policy, &ingress)
	if policy.Spec.PodSelector.MatchLabels["app"] != all.Deployment.Spec.Template.Labels["app"] {
		t.Errorf("the policy is for %v", policy.Spec.PodSelector.MatchLabels)
	}
	backend := ingress.Spec.Rules[0].HTTP.Paths[0].Backend.Service
	if backend.Name != all.Service.Name || backend.Port.Number != all.Service.Spec.Ports[0].Port {
		t.Errorf("the ingress leads to %s:%d", backend.Name, backend.Port.Number)
	}
	snippet := ingress.Annotations["nginx.ingress.kubernetes.io/server-snippet"]
	if !strings.Contains(snippet, "metrics") || !strings.Contains(snippet, "404") {
		t.Errorf("the metrics are open: %q", snippet)
	}
	config := all.ConfigMap.Data["tamga.yaml"]
	if !strings.Contains(config, "factor_delay: 24h") || !strings.Contains(config, "second_operator") {
		t.Error("the configuration is not one of production")
	}
}
