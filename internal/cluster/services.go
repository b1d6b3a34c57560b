// SPDX-License-Identifier: Apache-2.0

//go:build linux

package cluster

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// Names and secrets of the bucket.
const (
	bucketName = "documents"
	accessKey  = "tamga-access"
	secretKey  = "tamga-secret-of-tests"
)

// Installed returns an error if a program of others is missing.
func Installed() error {
	_, database := postgresPrograms()
	_, bucket := bucketProgram()
	_, balancer := balancerProgram()
	return errors.Join(database, bucket, balancer)
}

func bucketProgram() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	program := filepath.Join(cache, "tamga-judges", "bin", "versitygw")
	if _, err := os.Stat(program); err != nil {
		return "", errors.New("the S3 server versitygw is not installed: ./test.sh installs it")
	}
	return program, nil
}

func balancerProgram() (string, error) {
	for _, name := range []string{"haproxy", "/usr/sbin/haproxy"} {
		if program, err := exec.LookPath(name); err == nil {
			return program, nil
		}
	}
	return "", errors.New("HAProxy is not installed (Debian: haproxy)")
}

// startBucket starts a server that speaks the S3 protocol and has one bucket, in files.
func (c *Cluster) startBucket(ctx context.Context) error {
	program, err := bucketProgram()
	if err != nil {
		return err
	}
	root := filepath.Join(c.dir, "bucket")
	if err := os.MkdirAll(filepath.Join(root, bucketName), 0o700); err != nil {
		return err
	}
	for name, secret := range map[string]string{"access": accessKey, "secret": secretKey} {
		if err := os.WriteFile(filepath.Join(c.data, name), []byte(secret+"\n"), 0o600); err != nil {
			return err
		}
	}
	cmd := exec.Command(program, "--port", c.bucketAddress(), "--quiet", "posix", root)
	cmd.Env = append(os.Environ(), "ROOT_ACCESS_KEY="+accessKey, "ROOT_SECRET_KEY="+secretKey)
	if c.bucket, err = c.start("bucket", cmd); err != nil {
		return err
	}
	return c.bucket.until(ctx, accepts(c.bucketAddress()))
}

func (c *Cluster) bucketAddress() string { return c.host + ":9000" }

// bucketSettings are the settings of the program for the bucket.
func (c *Cluster) bucketSettings() []string {
	return []string{
		"bucket.endpoint=http://" + c.bucketAddress(), "bucket.name=" + bucketName, "bucket.region=us-east-1", "bucket.prefix=tamga/",
		"bucket.path_style=true", "bucket.access_key_file=access", "bucket.secret_key_file=secret",
	}
}

// balancerConfig is the configuration that docs/cluster.md shows.
//
//go:embed testdata/haproxy.cfg
var balancerConfig []byte

// balancerServers is the number of processes in the configuration. Missing ones are down.
const balancerServers = 3

// startBalancer starts HAProxy in front of the processes.
func (c *Cluster) startBalancer(ctx context.Context) error {
	program, err := balancerProgram()
	if err != nil {
		return err
	}
	config := filepath.Join(c.dir, "haproxy.cfg")
	if err := os.WriteFile(config, balancerConfig, 0o644); err != nil {
		return err
	}
	cmd := exec.Command(program, "-db", "-f", config)
	cmd.Env = append(os.Environ(), "LISTEN="+c.front(), "OPENSSL_CONF=/dev/null")
	for i := range balancerServers {
		cmd.Env = append(cmd.Env, fmt.Sprintf("TAMGA%d=%s", i, c.nodeAddress(i)))
	}
	if c.balancer, err = c.start("haproxy", cmd); err != nil {
		return err
	}
	return c.balancer.until(ctx, accepts(c.front()))
}

// front is the public address of the service.
func (c *Cluster) front() string { return c.host + ":8080" }
