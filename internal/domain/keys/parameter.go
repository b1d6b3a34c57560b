// SPDX-License-Identifier: Apache-2.0

package keys

import (
	"context"
	"unicode/utf8"

	"tamga/internal/domain/audit"
	"tamga/internal/domain/fault"
)

// Limits of the parameters of a key.
const (
	maxParameters     = 100
	maxParameterName  = 128  // characters
	maxParameterValue = 4096 // bytes
)

// ParameterStore keeps parameters.
type ParameterStore interface {
	// KeyParameter reads the value that a key has under a name.
	KeyParameter(ctx context.Context, keyID, name string) (value string, found bool, err error)
	// SetKeyParameter stores a value with a key. It reports false when the key has limit
	// parameters of other names already.
	SetKeyParameter(ctx context.Context, keyID, name, value string, limit int) (bool, error)
}

// Parameters are named values that clients store with the keys of their users. The
// service does not interpret them.
type Parameters struct {
	Keys  *Service
	Store ParameterStore
}

// Get returns a parameter of the key of a certificate, or "" when it was never set.
// Faults: cert_not_found, param_is_null.
func (p Parameters) Get(ctx context.Context, who audit.Principal, id, name string) (string, error) {
	c, err := p.find(ctx, who, id, name)
	if err != nil {
		return "", err
	}
	value, _, err := p.Store.KeyParameter(ctx, c.KeyID, name)
	return value, err
}

// Set stores a parameter with the key of a certificate. Faults: cert_not_found,
// param_is_null, value_is_null, invalid_parameters, invalid_object_state.
func (p Parameters) Set(ctx context.Context, a Act, id, name, value string) error {
	c, err := p.find(ctx, a.Who, id, name)
	if err != nil {
		return err
	}
	if value == "" {
		return fault.New(fault.ValueIsNull, "Data is missing: send the value")
	}
	if len(value) > maxParameterValue {
		return fault.Newf(fault.InvalidParameters, "Data: at most %d bytes", maxParameterValue)
	}
	kept, err := p.Store.SetKeyParameter(ctx, c.KeyID, name, value, maxParameters)
	if err == nil && !kept {
		err = fault.Newf(fault.InvalidObjectState, "a key has at most %d parameters", maxParameters)
	}
	return err
}

// find returns the certificate of a request and checks the name of the parameter.
func (p Parameters) find(ctx context.Context, who audit.Principal, id, name string) (*Certificate, error) {
	c, err := p.Keys.Find(ctx, who.UserID, id)
	if f, ok := fault.As(err); ok {
		return nil, fault.New(fault.CertNotFound, f.Message)
	}
	if err != nil {
		return nil, err
	}
	if name == "" {
		return nil, fault.New(fault.ParamIsNull, "Param is missing: name the parameter")
	}
	if utf8.RuneCountInString(name) > maxParameterName {
		return nil, fault.Newf(fault.InvalidParameters, "Param: at most %d characters", maxParameterName)
	}
	return c, nil
}
