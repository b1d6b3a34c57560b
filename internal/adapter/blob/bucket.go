// SPDX-License-Identifier: Apache-2.0

package blob

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"tamga/internal/domain/document"
	"tamga/internal/domain/fault"
)

// BucketOptions name a bucket and its server.
type BucketOptions struct {
	Endpoint    string // http:// or https://, host and port
	Region      string // "": ask the server
	Bucket      string
	Prefix      string // prefix of the names of our objects; "" or ending with a slash
	AccessKey   string
	SecretKey   string
	PathStyle   bool           // the bucket is part of the path, not of the host name
	Authorities *x509.CertPool // trusted roots for the server's certificate; nil: the system's
}

// Bucket keeps objects in a bucket of a server that speaks the S3 protocol. Requests are signed
// (Signature Version 4). Any number of processes may share a bucket.
//
// An object of up to partSize bytes is one request. A longer one is uploaded in parts and becomes
// visible when it is complete.
type Bucket struct {
	client *minio.Core
	bucket string
	prefix string
	stall  time.Duration // stallTime; shorter in tests
}

var _ Storage = (*Bucket)(nil)

const (
	// partSize is the size of a part of an upload in bytes. It is the smallest that the
	// protocol allows, because each upload in progress holds a part in memory. 10 000
	// parts, the most for one upload, are 48 GiB.
	partSize = 5 << 20
	// readSize is how many bytes are read at a time and cached, because formats read many
	// small pieces close to each other.
	readSize = 1 << 20
	// blocks is how many such blocks an open object caches.
	blocks = 2

	dialTime  = 5 * time.Second  // for connecting to the server
	shortCall = 10 * time.Second // for a request with a small body, with all attempts
	longCall  = 3 * time.Minute  // for a request with a part, with all attempts
	// stallTime is how long a request with a part may make no progress. It is also the time
	// limit for the server to make a part durable.
	stallTime = 10 * time.Second
	// joinTime is the time limit for the server to join the parts of an upload.
	joinTime  = time.Minute
	tries     = 4
	sweepTime = 10 * time.Minute // for one sweep of the bucket
)

// NewBucket returns a Bucket. The bucket must exist.
func NewBucket(ctx context.Context, o BucketOptions) (*Bucket, error) {
	u, err := url.Parse(o.Endpoint)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, errors.New("blob: the endpoint of the bucket must be http:// or https:// and a host")
	}
	lookup := minio.BucketLookupAuto
	if o.PathStyle {
		lookup = minio.BucketLookupPath
	}
	client, err := minio.NewCore(u.Host, &minio.Options{
		Creds:        credentials.NewStaticV4(o.AccessKey, o.SecretKey, ""),
		Secure:       u.Scheme == "https",
		Region:       o.Region,
		BucketLookup: lookup,
		MaxRetries:   1, // call repeats requests
		Transport: &http.Transport{
			DialContext:           (&net.Dialer{Timeout: dialTime}).DialContext,
			TLSClientConfig:       &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: o.Authorities},
			TLSHandshakeTimeout:   dialTime,
			ResponseHeaderTimeout: time.Minute,
			ExpectContinueTimeout: 5 * time.Second,
			IdleConnTimeout:       time.Minute,
			MaxIdleConnsPerHost:   64,
			ForceAttemptHTTP2:     true,
			DisableCompression:    true, // read exactly what is stored
		},
	})
	if err != nil {
		return nil, fmt.Errorf("blob: the bucket: %w", err)
	}
	b := &Bucket{client: client, bucket: o.Bucket, prefix: o.Prefix, stall: stallTime}
	return b, b.Ready(ctx)
}

// Ready implements [Storage].
func (b *Bucket) Ready(ctx context.Context) error {
	exists := false
	err := b.call(ctx, shortCall, func(ctx context.Context) (err error) {
		exists, err = b.client.BucketExists(ctx, b.bucket)
		return err
	})
	if err != nil {
		return fmt.Errorf("blob: checking that the bucket exists: %w", err)
	}
	if !exists {
		return fmt.Errorf("blob: there is no bucket %q; create it, or correct its name", b.bucket)
	}
	return nil
}

// key returns the name of an object in the bucket.
func (b *Bucket) key(name string) (string, error) {
	folder, file, nested := strings.Cut(name, "/")
	if !nested {
		// Objects without a folder get one, so that a sweep can list them.
		folder, file = preparedFolder, name
	}
	if !plainName(folder) || !plainName(file) {
		return "", fmt.Errorf("blob: %q is not a valid name of an object", name)
	}
	return b.prefix + folder + "/" + file, nil
}

// preparedFolder is the folder in a bucket for objects without a folder.
const preparedFolder = "prepared"

// bucketWriter is an object that is being written.
type bucketWriter struct {
	b      *Bucket
	ctx    context.Context
	key    string
	part   []byte // not sent yet
	upload string // name of the upload in parts; "" while one request may be enough
	parts  []minio.CompletePart
	done   bool
	err    error
}

func (b *Bucket) create(ctx context.Context, name string) (document.Writer, error) {
	key, err := b.key(name)
	if err != nil {
		return nil, err
	}
	return &bucketWriter{b: b, ctx: ctx, key: key}, nil
}

// Write implements io.Writer.
func (w *bucketWriter) Write(p []byte) (total int, err error) {
	if w.done && w.err == nil {
		w.err = errClosed
	}
	for len(p) > 0 && w.err == nil {
		if len(w.part) == partSize {
			w.err = w.send()
			continue
		}
		n := min(len(p), partSize-len(w.part))
		w.part = append(w.part, p[:n]...)
		p, total = p[n:], total+n
	}
	return total, w.err
}

// send sends a part.
func (w *bucketWriter) send() error {
	if w.upload == "" {
		err := w.b.call(w.ctx, shortCall, func(ctx context.Context) (err error) {
			w.upload, err = w.b.client.NewMultipartUpload(ctx, w.b.bucket, w.key, minio.PutObjectOptions{ContentType: binaryType})
			return err
		})
		if err != nil {
			return putting(err)
		}
	}
	number, sent := len(w.parts)+1, 0
	err := w.b.moving(w.ctx, func(ctx context.Context, moved func()) error {
		sent++
		p, err := w.b.client.PutObjectPart(ctx, w.b.bucket, w.key, w.upload, number, &watched{bytes.NewReader(w.part), moved}, int64(len(w.part)), minio.PutObjectPartOptions{})
		if err == nil {
			w.parts = append(w.parts, minio.CompletePart{PartNumber: number, ETag: p.ETag})
		}
		return err
	})
	w.part = w.part[:0]
	if sent > 1 {
		w.part = nil // a failed attempt may still be reading it
	}
	return putting(err)
}

const binaryType = "application/octet-stream"

// Commit implements [document.Writer].
func (w *bucketWriter) Commit() error {
	if w.done && w.err == nil {
		w.err = errClosed
	}
	if w.err == nil && w.upload == "" {
		w.err = putting(w.b.moving(w.ctx, func(ctx context.Context, moved func()) error {
			_, err := w.b.client.PutObject(ctx, w.b.bucket, w.key, &watched{bytes.NewReader(w.part), moved}, int64(len(w.part)), "", "", minio.PutObjectOptions{ContentType: binaryType})
			return err
		}))
		w.done = w.err == nil
	} else if w.err == nil {
		if len(w.part) > 0 {
			w.err = w.send()
		}
		if w.err == nil {
			w.err = putting(w.b.call(w.ctx, joinTime, func(ctx context.Context) error {
				_, err := w.b.client.CompleteMultipartUpload(ctx, w.b.bucket, w.key, w.upload, w.parts, minio.PutObjectOptions{ContentType: binaryType})
				return err
			}))
			w.done = w.err == nil
		}
	}
	err := w.err
	w.Abort()
	return err
}

// Abort implements [document.Writer]. If the server does not receive the abort, the sweep removes the
// upload.
func (w *bucketWriter) Abort() {
	w.part = nil
	if w.done {
		return
	}
	w.done = true
	if w.upload != "" {
		w.b.call(context.WithoutCancel(w.ctx), shortCall, func(ctx context.Context) error {
			return w.b.client.AbortMultipartUpload(ctx, w.b.bucket, w.key, w.upload)
		})
	}
}

// call makes a request and repeats it if another attempt may succeed. most limits the time of all
// attempts. The library can repeat requests too, but it would rewind a body that the failed attempt
// may still be reading. f must therefore make a new body each time. If the server cannot be reached
// or does not respond, the error is a [fault.Outage].
func (b *Bucket) call(ctx context.Context, most time.Duration, f func(ctx context.Context) error) error {
	bounded, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	for n := 1; ; n++ {
		err := f(bounded)
		if err == nil || n == tries || bounded.Err() != nil || !passing(err) {
			return away(ctx, err)
		}
		pause := time.NewTimer(rand.N(100 * time.Millisecond << n))
		select {
		case <-pause.C:
		case <-bounded.Done():
			pause.Stop()
			return away(ctx, err)
		}
	}
}

// moving is call for a request with a part. It also ends an attempt that makes no progress for
// stallTime. f must call moved when it has sent or received bytes.
func (b *Bucket) moving(ctx context.Context, f func(ctx context.Context, moved func()) error) error {
	return b.call(ctx, longCall, func(ctx context.Context) error {
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		stalled := time.AfterFunc(b.stall, func() { cancel(errStalled) })
		defer stalled.Stop()
		err := f(ctx, func() { stalled.Reset(b.stall) })
		if err != nil && errors.Is(context.Cause(ctx), errStalled) {
			return errStalled
		}
		return err
	})
}

// errStalled ends an attempt that makes no progress. It wraps context.DeadlineExceeded, so there is no
// further attempt.
var errStalled = fmt.Errorf("blob: the server of the bucket stopped responding: %w", context.DeadlineExceeded)

// watched is a request body that reports reads as progress.
type watched struct {
	body  *bytes.Reader
	moved func()
}

func (w *watched) Read(p []byte) (int, error) {
	w.moved()
	return w.body.Read(p)
}

func (w *watched) Seek(offset int64, whence int) (int64, error) { return w.body.Seek(offset, whence) }

func (w *watched) ReadAt(p []byte, off int64) (int, error) {
	w.moved()
	return w.body.ReadAt(p, off)
}

// away converts an error of the connection, or of an overloaded server, to a [fault.Outage]. It does
// not change errors that come from a canceled request.
func away(ctx context.Context, err error) error {
	if err == nil || errors.Is(ctx.Err(), context.Canceled) || !passing(err) && !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return &fault.Outage{Message: "the storage of documents is not available now; try again later", Err: err, Part: "documents"}
}

// passing reports whether another attempt may succeed: after an error of the connection, and after
// responses that say so.
func passing(err error) bool {
	if errors.Is(err, context.DeadlineExceeded) {
		return false // the time is used up
	}
	switch answer := minio.ToErrorResponse(err); answer.StatusCode {
	case 0, http.StatusRequestTimeout, http.StatusTooManyRequests, http.StatusInternalServerError, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	default:
		return answer.Code == "RequestTimeout" || answer.Code == "SlowDown"
	}
}

// putting adds to an error what was being done, and document.ErrNoRoom if the storage is full.
func putting(err error) error {
	if err == nil {
		return nil
	}
	said := err
	if o, is := fault.AsOutage(err); is {
		said = o.Err
	}
	answer := minio.ToErrorResponse(said)
	switch {
	case answer.StatusCode == http.StatusInsufficientStorage, strings.Contains(answer.Code, "QuotaExceeded"), answer.Code == "XMinioStorageFull", answer.Code == "ServiceQuotaExceededException":
		return fmt.Errorf("blob: keeping a document in the bucket: %w: %w", document.ErrNoRoom, err)
	}
	return fmt.Errorf("blob: keeping a document in the bucket: %w", err)
}

// bucketObject is an open object. It reads blocks and caches a few.
type bucketObject struct {
	b    *Bucket
	ctx  context.Context
	key  string
	etag string
	size int64

	mu   sync.Mutex
	kept [blocks]block // the most recently used first
}

type block struct {
	number int64
	data   []byte // nil: unused
}

func (b *Bucket) open(ctx context.Context, name string) (document.Object, error) {
	key, err := b.key(name)
	if err != nil {
		return nil, err
	}
	o := &bucketObject{b: b, ctx: ctx, key: key}
	err = b.call(ctx, shortCall, func(ctx context.Context) error {
		info, err := b.client.StatObject(ctx, b.bucket, key, minio.StatObjectOptions{})
		o.etag, o.size = info.ETag, info.Size
		return err
	})
	if missing(err) {
		return nil, fmt.Errorf("blob: opening a document in the bucket: %w: %w", fs.ErrNotExist, err)
	}
	if err != nil {
		return nil, fmt.Errorf("blob: opening a document in the bucket: %w", err)
	}
	return o, nil
}

// missing reports whether the error means that the object does not exist.
func missing(err error) bool {
	switch minio.ToErrorResponse(err).Code {
	case minio.NoSuchKey, minio.NoSuchUpload, "NotFound":
		return true
	}
	return false
}

// Size implements [document.Object].
func (o *bucketObject) Size() int64 { return o.size }

// Close implements io.Closer.
func (o *bucketObject) Close() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.kept = [blocks]block{}
	return nil
}

// ReadAt implements io.ReaderAt.
func (o *bucketObject) ReadAt(p []byte, off int64) (int, error) {
	if off < 0 {
		return 0, errors.New("blob: negative offset in an object")
	}
	total := 0
	for total < len(p) {
		if off >= o.size {
			return total, io.EOF
		}
		data, err := o.block(off / readSize)
		if err != nil {
			return total, err
		}
		n := copy(p[total:], data[off%readSize:])
		total, off = total+n, off+int64(n)
	}
	return total, nil
}

// block returns a block of the object. Callers must not change it.
func (o *bucketObject) block(number int64) ([]byte, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for i, k := range o.kept {
		if k.data != nil && k.number == number {
			copy(o.kept[1:i+1], o.kept[:i])
			o.kept[0] = k
			return k.data, nil
		}
	}
	from := number * readSize
	data := make([]byte, min(readSize, o.size-from))
	var opts minio.GetObjectOptions
	if err := opts.SetRange(from, from+int64(len(data))-1); err != nil {
		return nil, err
	}
	if o.etag != "" {
		// Refuse another object under the same name.
		if err := opts.SetMatchETag(o.etag); err != nil {
			return nil, err
		}
	}
	err := o.b.moving(o.ctx, func(ctx context.Context, moved func()) error {
		body, _, _, err := o.b.client.GetObject(ctx, o.b.bucket, o.key, opts)
		if err != nil {
			return err
		}
		defer body.Close()
		for at := 0; at < len(data); {
			n, err := body.Read(data[at:])
			if at += n; at == len(data) {
				break
			}
			if err == io.EOF {
				err = io.ErrUnexpectedEOF
			}
			if err != nil {
				return err
			}
			moved()
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("blob: reading a document in the bucket: %w", err)
	}
	copy(o.kept[1:], o.kept[:])
	o.kept[0] = block{number, data}
	return data, nil
}

func (b *Bucket) remove(ctx context.Context, name string) error {
	key, err := b.key(name)
	if err != nil {
		return err
	}
	if err := b.abandon(ctx, key, func(k string) bool { return k == key }); err != nil {
		return fmt.Errorf("blob: removing an unfinished document in the bucket: %w", err)
	}
	err = b.call(ctx, shortCall, func(ctx context.Context) error {
		return b.client.RemoveObject(ctx, b.bucket, key, minio.RemoveObjectOptions{})
	})
	if err != nil && !missing(err) {
		return fmt.Errorf("blob: removing a document in the bucket: %w", err)
	}
	return nil
}

// abandon aborts the uploads in parts whose keys begin with prefix and for which gone returns true.
func (b *Bucket) abandon(ctx context.Context, prefix string, gone func(key string) bool) error {
	key, upload := "", ""
	for {
		var list minio.ListMultipartUploadsResult
		err := b.call(ctx, shortCall, func(ctx context.Context) (err error) {
			list, err = b.client.ListMultipartUploads(ctx, b.bucket, prefix, key, upload, "", 1000)
			return err
		})
		if err != nil {
			return err
		}
		for _, u := range list.Uploads {
			if !strings.HasPrefix(u.Key, prefix) || !gone(u.Key) {
				continue
			}
			err := b.call(ctx, shortCall, func(ctx context.Context) error {
				return b.client.AbortMultipartUpload(ctx, b.bucket, u.Key, u.UploadID)
			})
			if err != nil && !missing(err) {
				return err
			}
		}
		if !list.IsTruncated || list.NextKeyMarker == key && list.NextUploadIDMarker == upload {
			return nil
		}
		key, upload = list.NextKeyMarker, list.NextUploadIDMarker
	}
}

func (b *Bucket) sweep(ctx context.Context, folder string, gone func(name string) bool) error {
	if folder == "" {
		folder = preparedFolder + "/"
	}
	prefix := b.prefix + folder
	ours := func(key string) bool { return gone(strings.TrimPrefix(key, prefix)) }
	if err := b.abandon(ctx, prefix, ours); err != nil {
		return fmt.Errorf("blob: sweeping the bucket: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, sweepTime)
	defer cancel()
	for o := range b.client.ListObjectsIter(ctx, b.bucket, minio.ListObjectsOptions{Prefix: prefix, Recursive: true}) {
		if o.Err != nil {
			return fmt.Errorf("blob: sweeping the bucket: %w", o.Err)
		}
		if !ours(o.Key) {
			continue
		}
		err := b.call(ctx, shortCall, func(ctx context.Context) error {
			return b.client.RemoveObject(ctx, b.bucket, o.Key, minio.RemoveObjectOptions{})
		})
		if err != nil && !missing(err) {
			return fmt.Errorf("blob: sweeping the bucket: %w", err)
		}
	}
	return nil
}
