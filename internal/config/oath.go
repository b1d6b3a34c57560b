// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"tamga/internal/domain/oath"
	"tamga/internal/domain/oath/otp"
)

// Oath configures one-time passwords of tokens and apps.
type Oath struct {
	// Steps of TOTP before and after the expected one whose code is accepted. Each further step
	// makes guessing easier.
	Window int64 `yaml:"window" default:"1"`
	// Steps of HOTP ahead whose code is accepted. Each further step makes guessing easier.
	LookAhead int64 `yaml:"look_ahead" default:"10"`
	// The same as `oath.window` if two consecutive codes are given.
	SyncWindow int64 `yaml:"sync_window" default:"240"`
	// The same as `oath.look_ahead` if two consecutive codes are given.
	SyncLookAhead int64 `yaml:"sync_look_ahead" default:"1000"`
	// Consecutive wrong codes after which a token is locked for a time.
	Attempts int `yaml:"attempts" default:"5"`
	// How long the token is locked.
	LockOut time.Duration `yaml:"lock_out" default:"15m"`
	// Consecutive wrong codes after which a token stays locked until an operator unlocks the user
	// or an administrator the token.
	MaxAttempts int `yaml:"max_attempts" default:"100"`
	// Hash algorithm that apps are set up with. Not every app supports `SHA256` and `SHA512`. Apps
	// show `messages.title`.
	AppAlgorithm string `yaml:"app_algorithm" default:"SHA1"`
	// Digits of a code that apps are set up with. Not every app supports 7 or 8.
	AppDigits int `yaml:"app_digits" default:"6"`
	// Period of codes that apps are set up with. Not every app supports other periods.
	AppPeriod time.Duration `yaml:"app_period" default:"30s"`
}

// Settings returns the rules of one-time passwords. title is the issuer that apps show.
func (c Oath) Settings(title string) oath.Settings {
	algorithm, known := otp.AlgorithmNamed(c.AppAlgorithm)
	if !known {
		algorithm = ""
	}
	return oath.Settings{
		Window: c.Window, LookAhead: c.LookAhead, SyncWindow: c.SyncWindow, SyncLookAhead: c.SyncLookAhead,
		Attempts: c.Attempts, LockOut: c.LockOut, MaxAttempts: c.MaxAttempts,
		Issuer: title, AppAlgorithm: algorithm, AppDigits: c.AppDigits, AppPeriod: c.AppPeriod,
	}
}

func (c Oath) check(title string) (faults []error) {
	for _, err := range c.Settings(title).Check() {
		text := strings.TrimPrefix(err.Error(), "oath: settings: ")
		key, rest, _ := strings.Cut(text, ":")
		if key == "issuer" {
			faults = append(faults, errors.New("messages.title: want a name"))
			continue
		}
		faults = append(faults, fmt.Errorf("oath.%s:%s", strings.NewReplacer(" ", "_", "-", "_").Replace(key), rest))
	}
	return faults
}
