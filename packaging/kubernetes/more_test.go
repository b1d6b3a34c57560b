// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"slices"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
)

// TestBackupManifest compares the CronJob with the Deployment that it backs up.
func TestBackupManifest(t *testing.T) {
	t.Parallel()
	all := build(t, "base")
	job := all.CronJob
	pod, served := job.Spec.JobTemplate.Spec.Template.Spec, all.Deployment.Spec.Template.Spec
	if job.Spec.ConcurrencyPolicy != batchv1.ForbidConcurrent {
		t.Errorf("two backups may run at once: %s", job.Spec.ConcurrencyPolicy)
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
		if v.Name == "backups" && v.PersistentVolumeClaim.ClaimName != all.Claim.Name {
			t.Errorf("the claim is %q", v.PersistentVolumeClaim.ClaimName)
		}
	}
}

// TestNetworkManifests checks that the way in leads to the service of the pods, without the metrics: these have a port that the
// monitoring alone reaches, and need no rule of an ingress controller.
func TestNetworkManifests(t *testing.T) {
	t.Parallel()
	all := build(t, "base")
	backend := all.Ingress.Spec.Rules[0].HTTP.Paths[0].Backend.Service
	if backend.Name != all.Service.Name || backend.Port.Number != all.Service.Spec.Ports[0].Port {
		t.Errorf("the ingress leads to %s:%d", backend.Name, backend.Port.Number)
	}
	for name := range all.Ingress.Annotations {
		if strings.HasSuffix(name, "-snippet") {
			t.Errorf("ingress-nginx refuses %s by default", name)
		}
	}
	config := all.ConfigMap.Data["tamga.yaml"]
	for _, want := range []string{"factor_delay: 24h", "second_operator", "listen: 0.0.0.0:8080", "metrics_listen: 0.0.0.0:9090"} {
		if !strings.Contains(config, want) {
			t.Errorf("the configuration has no %s", want)
		}
	}
	template := all.Deployment.Spec.Template
	if template.Annotations["prometheus.io/port"] != "9090" || template.Spec.Containers[0].Ports[1].ContainerPort != 9090 {
		t.Errorf("the metrics are looked for at %q", template.Annotations["prometheus.io/port"])
	}
	open := map[string]int32{} // namespaces and the port that each reaches
	for _, rule := range all.Policy.Spec.Ingress {
		for _, from := range rule.From {
			open[from.NamespaceSelector.MatchLabels["kubernetes.io/metadata.name"]] = rule.Ports[0].Port.IntVal
		}
	}
	if len(open) != 2 || open["ingress-nginx"] != 8080 || open["monitoring"] != 9090 {
		t.Errorf("the pods are open for %v", open)
	}
}
