// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// image is what all architectures of the image have in common.
type image struct {
	Version, Commit string
	Created         time.Time
}

// serviceID is the user and the group that the image runs as. The number is in compose.yaml and in the
// Kubernetes manifests too.
const serviceID = 65532

// healthcheck is a command of Docker's in the configuration of an image. Kubernetes has its own.
type healthcheck struct {
	Test                           []string
	Interval, Timeout, StartPeriod time.Duration
	Retries                        int
}

// The types of the OCI image specification 1.1, as far as the image needs them.
type (
	descriptor struct {
		MediaType   string            `json:"mediaType"`
		Digest      string            `json:"digest"`
		Size        int64             `json:"size"`
		Annotations map[string]string `json:"annotations,omitempty"`
		Platform    *platform         `json:"platform,omitempty"`
	}
	platform struct {
		Architecture string `json:"architecture"`
		OS           string `json:"os"`
	}
	manifest struct {
		SchemaVersion int               `json:"schemaVersion"`
		MediaType     string            `json:"mediaType"`
		Config        descriptor        `json:"config"`
		Layers        []descriptor      `json:"layers"`
		Annotations   map[string]string `json:"annotations,omitempty"`
	}
	index struct {
		SchemaVersion int               `json:"schemaVersion"`
		MediaType     string            `json:"mediaType"`
		Manifests     []descriptor      `json:"manifests"`
		Annotations   map[string]string `json:"annotations,omitempty"`
	}
	configuration struct {
		Created time.Time `json:"created"`
		platform
		Config struct {
			User         string
			ExposedPorts map[string]struct{}
			Env          []string
			Entrypoint   []string
			Cmd          []string
			Volumes      map[string]struct{}
			WorkingDir   string
			Labels       map[string]string
			Healthcheck  healthcheck
		} `json:"config"`
		RootFS struct {
			Type    string   `json:"type"`
			DiffIDs []string `json:"diff_ids"`
		} `json:"rootfs"`
		History []map[string]any `json:"history"`
	}
)

const (
	mediaIndex    = "application/vnd.oci.image.index.v1+json"
	mediaManifest = "application/vnd.oci.image.manifest.v1+json"
	mediaConfig   = "application/vnd.oci.image.config.v1+json"
	mediaLayer    = "application/vnd.oci.image.layer.v1.tar+gzip"
)

// writeImage writes an OCI layout with one image of several architectures. A program is
// ARCHITECTURE=FILE.
func writeImage(file string, of image, programs []string) (err error) {
	out, err := os.Create(file)
	if err != nil {
		return err
	}
	defer func() {
		if e := out.Close(); err == nil {
			err = e
		}
		if err != nil {
			os.Remove(file)
		}
	}()
	layout := &layout{tar: tar.NewWriter(out), at: of.Created, written: map[string]bool{}}
	annotations := map[string]string{
		"org.opencontainers.image.title":    "Tamga",
		"org.opencontainers.image.version":  of.Version,
		"org.opencontainers.image.revision": of.Commit,
		"org.opencontainers.image.created":  of.Created.Format(time.RFC3339),
		"org.opencontainers.image.licenses": "Apache-2.0",
	}
	var manifests []descriptor
	for _, p := range programs {
		architecture, name, ok := strings.Cut(p, "=")
		if !ok {
			return errUsage
		}
		d, err := layout.architecture(of, platform{architecture, "linux"}, name, annotations)
		if err != nil {
			return err
		}
		manifests = append(manifests, d)
	}
	all, err := layout.json(mediaIndex, index{2, mediaIndex, manifests, annotations})
	if err != nil {
		return err
	}
	all.Annotations = map[string]string{"org.opencontainers.image.ref.name": of.Version}
	top, err := json.Marshal(index{2, mediaIndex, []descriptor{all}, nil})
	if err != nil {
		return err
	}
	if err := layout.file("index.json", top); err != nil {
		return err
	}
	if err := layout.file("oci-layout", []byte(`{"imageLayoutVersion":"1.0.0"}`)); err != nil {
		return err
	}
	return layout.tar.Close()
}

// layout is an OCI layout in a tar file.
type layout struct {
	tar     *tar.Writer
	at      time.Time
	written map[string]bool
}

func (l *layout) file(name string, content []byte) error {
	if l.written[name] {
		return nil
	}
	l.written[name] = true
	h := &tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644, Size: int64(len(content)), ModTime: l.at, Format: tar.FormatUSTAR}
	if err := l.tar.WriteHeader(h); err != nil {
		return err
	}
	_, err := l.tar.Write(content)
	return err
}

func (l *layout) blob(media string, content []byte) (descriptor, error) {
	d := descriptor{MediaType: media, Digest: digest(content), Size: int64(len(content))}
	return d, l.file("blobs/sha256/"+strings.TrimPrefix(d.Digest, "sha256:"), content)
}

func (l *layout) json(media string, value any) (descriptor, error) {
	text, err := json.Marshal(value)
	if err != nil {
		return descriptor{}, err
	}
	return l.blob(media, text)
}

func digest(b []byte) string {
	sum := sha256.Sum256(b)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// architecture writes the image of one architecture.
func (l *layout) architecture(of image, on platform, program string, annotations map[string]string) (descriptor, error) {
	content, err := os.ReadFile(program)
	if err != nil {
		return descriptor{}, err
	}
	plain, err := rootFS(content, of.Created)
	if err != nil {
		return descriptor{}, err
	}
	var compressed bytes.Buffer
	z, err := gzip.NewWriterLevel(&compressed, gzip.BestCompression)
	if err != nil {
		return descriptor{}, err
	}
	if _, err := z.Write(plain); err != nil {
		return descriptor{}, err
	}
	if err := z.Close(); err != nil {
		return descriptor{}, err
	}
	layer, err := l.blob(mediaLayer, compressed.Bytes())
	if err != nil {
		return descriptor{}, err
	}
	c := configuration{Created: of.Created, platform: on}
	c.Config.User = fmt.Sprintf("%d:%[1]d", serviceID)
	c.Config.ExposedPorts = map[string]struct{}{"8080/tcp": {}}
	c.Config.Env = []string{"SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt"}
	c.Config.Entrypoint = []string{"/usr/bin/tamga"}
	c.Config.Cmd = []string{"serve", "--config", "/etc/tamga/tamga.yaml"}
	c.Config.Volumes = map[string]struct{}{"/var/lib/tamga": {}}
	c.Config.WorkingDir = "/var/lib/tamga"
	c.Config.Labels = annotations
	c.Config.Healthcheck = healthcheck{
		Test:     []string{"CMD", "/usr/bin/tamga", "ready", "--config", "/etc/tamga/tamga.yaml"},
		Interval: 10 * time.Second, Timeout: 5 * time.Second, StartPeriod: 30 * time.Second, Retries: 3,
	}
	c.RootFS.Type, c.RootFS.DiffIDs = "layers", []string{digest(plain)}
	c.History = []map[string]any{{"created": of.Created, "created_by": "packaging/release.sh"}}
	config, err := l.json(mediaConfig, c)
	if err != nil {
		return descriptor{}, err
	}
	d, err := l.json(mediaManifest, manifest{2, mediaManifest, config, []descriptor{layer}, annotations})
	d.Platform = &on
	return d, err
}

// rootFS returns the files of the image as a tar: the program, the authorities that programs trust for
// TLS, a user, and directories for the configuration and the data. There is no shell and no library.
func rootFS(program []byte, at time.Time) ([]byte, error) {
	var roots bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint != nil {
			continue // crypto/x509 cannot apply a constraint to a root of a file
		}
		if err := pem.Encode(&roots, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}); err != nil {
			return nil, err
		}
	}
	id := fmt.Sprint(serviceID)
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, f := range []struct {
		name    string
		mode    int64
		owner   int
		content []byte // nil for a directory
	}{
		{"etc/", 0o755, 0, nil},
		{"etc/group", 0o644, 0, []byte("root:x:0:\ntamga:x:" + id + ":\n")},
		{"etc/passwd", 0o644, 0, []byte("root:x:0:0:root:/:/nologin\ntamga:x:" + id + ":" + id + ":Tamga:/var/lib/tamga:/nologin\n")},
		{"etc/ssl/", 0o755, 0, nil},
		{"etc/ssl/certs/", 0o755, 0, nil},
		{"etc/ssl/certs/ca-certificates.crt", 0o644, 0, roots.Bytes()},
		{"etc/tamga/", 0o755, 0, nil},
		{"tmp/", 0o1777, 0, nil},
		{"usr/", 0o755, 0, nil},
		{"usr/bin/", 0o755, 0, nil},
		{"usr/bin/tamga", 0o755, 0, program},
		{"var/", 0o755, 0, nil},
		{"var/lib/", 0o755, 0, nil},
		{"var/lib/tamga/", 0o700, serviceID, nil},
	} {
		h := &tar.Header{Typeflag: tar.TypeReg, Name: f.name, Mode: f.mode, Uid: f.owner, Gid: f.owner, Size: int64(len(f.content)), ModTime: at, Format: tar.FormatUSTAR}
		if strings.HasSuffix(f.name, "/") {
			h.Typeflag = tar.TypeDir
		}
		if err := w.WriteHeader(h); err != nil {
			return nil, err
		}
		if _, err := io.Copy(w, bytes.NewReader(f.content)); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}
