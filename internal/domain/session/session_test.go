// SPDX-License-Identifier: Apache-2.0

package session_test

import (
	"context"
	"errors"
	"reflect"
	"testing"

	"tamga/internal/domain/contact"
	"tamga/internal/domain/device"
	"tamga/internal/domain/session"
	"tamga/internal/domain/user"
)

var (
	_ user.Sessions   = (*session.Service)(nil)
	_ contact.Methods = (*session.Service)(nil)
	_ device.Methods  = (*session.Service)(nil)
)

// calls is a store of one user with one method. It records the calls that change data.
type calls struct {
	method string
	err    error
	list   []string
}

func (c *calls) note(name string) error { c.list = append(c.list, name); return c.err }

func (c *calls) RevokeTokens(context.Context, string) error       { return c.note("tokens") }
func (c *calls) EndUserAttempt(context.Context, string) error     { return c.note("passwords") }
func (c *calls) ForgiveOathTokenOf(context.Context, string) error { return c.note("codes") }

func (c *calls) HasMethod(_ context.Context, _, method string) (bool, error) {
	return method == c.method, nil
}

func TestSessions(t *testing.T) {
	type s = session.Service
	for name, c := range map[string]struct {
		method string
		call   func(*s, context.Context) error
		want   []string
	}{
		"end all":                 {"", func(s *s, ctx context.Context) error { return s.EndAll(ctx, "u") }, []string{"tokens"}},
		"forgive":                 {"", func(s *s, ctx context.Context) error { return s.Forgive(ctx, "u") }, []string{"passwords", "codes"}},
		"contact, method not set": {"oath", func(s *s, ctx context.Context) error { return s.ContactGone(ctx, "u", "otpviasms") }, nil},
		"contact, method set":     {"otpviasms", func(s *s, ctx context.Context) error { return s.ContactGone(ctx, "u", "otpviasms") }, []string{"tokens"}},
		"devices, method not set": {"oath", func(s *s, ctx context.Context) error { return s.DevicesGone(ctx, "u") }, nil},
		"devices, method set":     {"mydss", func(s *s, ctx context.Context) error { return s.DevicesGone(ctx, "u") }, []string{"tokens"}},
	} {
		store := &calls{method: c.method}
		if err := c.call(session.New(store), t.Context()); err != nil || !reflect.DeepEqual(store.list, c.want) {
			t.Errorf("%s: calls %q, error %v; want calls %q", name, store.list, err, c.want)
		}
		store.err = errors.New("the store is unavailable")
		if err := c.call(session.New(store), t.Context()); c.want != nil && !errors.Is(err, store.err) {
			t.Errorf("%s: %v, want the store's error", name, err)
		}
	}
}
