// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"strings"
	"time"

	stored "tamga/internal/domain/document"
	"tamga/internal/setting"
)

// Documents configures stored documents.
type Documents struct {
	// Whether document bytes are stored in the clear, including those of two steps. Otherwise they
	// are sealed with the master key. Documents stored the other way stay readable. What was decrypted
	// is always sealed.
	Plain bool `yaml:"plain"`
	// Size up to which a document is kept in the database instead of in `blob_dir` or the bucket: stored
	// documents, those of two steps and of operations. Encrypted all the same. 0: none.
	InDatabase setting.Size `yaml:"in_database" default:"32KiB" min:"0" max:"128KiB"`
	// Lifetime of a temporary document.
	TemporaryLife time.Duration `yaml:"temporary_life" default:"24h" min:"1m"`
	// Body of an upload, of one document or of many together; above it 413.
	Upload setting.Size `yaml:"upload" default:"2GiB" above:"0"`
	// Documents that may be stored in the installation; above it `invalid_object_state`.
	Objects int64 `yaml:"objects" default:"1000000" above:"0"`
	// Bytes of documents that may be stored in the installation; above it `invalid_object_state`.
	Bytes setting.Size `yaml:"bytes" default:"1024GiB" above:"0"`
	// Documents that one user may store; above it `invalid_object_state`.
	UserObjects int64 `yaml:"user_objects" default:"10000" above:"0"`
	// Bytes of documents that one user may store; above it `invalid_object_state`.
	UserBytes setting.Size `yaml:"user_bytes" default:"16GiB" above:"0"`
}

// Bucket configures a bucket of a server that speaks the S3 protocol.
type Bucket struct {
	// Server that speaks the S3 protocol, such as `https://s3.example.org`: documents are in a
	// bucket there instead of in `blob_dir` ([below](#documents-in-a-bucket)).
	Endpoint string `yaml:"endpoint" rule:"url"`
	// Region of the bucket. Default: requested from the server.
	Region string `yaml:"region"`
	// Name of the bucket, which must exist. Default: none, required.
	Name string `yaml:"name"`
	// Prefix of the names of our objects, such as `tamga/`.
	Prefix string `yaml:"prefix"`
	// File with the access key. Default: none, required.
	AccessKeyFile string `yaml:"access_key_file"`
	// File with the secret of the access key. Default: none, required.
	SecretKeyFile string `yaml:"secret_key_file"`
	// Whether the bucket is a part of the path. Otherwise it is a part of the host name, if the
	// server is known to support that.
	PathStyle bool `yaml:"path_style"`
	// Authorities (PEM) of the server's certificate. Default: the system's.
	AuthoritiesFile string `yaml:"authorities_file"`
}

// Rules returns the limits of stored documents.
func (d *Documents) Rules() stored.Rules {
	return stored.Rules{
		TemporaryLife: d.TemporaryLife,
		InRow:         int64(d.InDatabase),
		All:           stored.Quota{Objects: d.Objects, Bytes: int64(d.Bytes)},
		Own:           stored.Quota{Objects: d.UserObjects, Bytes: int64(d.UserBytes)},
	}
}

// checkBucket returns the faults of the bucket.
func (c *Config) checkBucket() []error {
	b := &c.Bucket
	var faults []error
	for _, check := range []struct {
		ok   bool
		text string
	}{
		{b.Endpoint == "" || b.Name != "" && b.AccessKeyFile != "" && b.SecretKeyFile != "", "bucket: want name, access_key_file and secret_key_file as well"},
		{b.Endpoint != "" || *b == Bucket{}, "bucket.endpoint: want the address of the server"},
		{b.Prefix == "" || strings.HasSuffix(b.Prefix, "/") && !strings.HasPrefix(b.Prefix, "/"), "bucket.prefix: want one that ends with a slash and begins with none, such as tamga/"},
	} {
		if !check.ok {
			faults = append(faults, errors.New(check.text))
		}
	}
	return faults
}
