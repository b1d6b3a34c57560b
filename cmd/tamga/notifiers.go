package main

import (
	"context"
	"fmt"
	"time"

	"tamga/internal/adapter/capture"
	"tamga/internal/adapter/store"
	"tamga/internal/domain/device"
	"tamga/internal/domain/notify"
)

// notifiers opens those that the configuration has settings for, in the order clients are told of
// them.
func (h *house) notifiers() (list []notify.Notifier, err error) {
	if h.config.Messages.Capture {
		h.captured = capture.New(store.Captured{DB: h.db}, h.ring)
		return h.captured.Notifiers(), nil
	}
	for _, p := range h.config.Notifiers() {
		if !p.Configured() {
			continue
		}
		path := "messages." + p.Section()
		n, err := p.Open(notify.Environment{
			Title:  h.config.Messages.Title,
			Now:    time.Now,
			Secret: func(file, setting string) (string, error) { return h.optionalSecret(file, path+"."+setting) },
			File:   func(file, setting string) ([]byte, error) { return h.ownFile(file, path+"."+setting) },
			Roots:  h.roots,
			Gone:   h.recipientGone,
		})
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		list = append(list, n)
	}
	return list, nil
}

// recipientGone forgets the push address of a device. Other recipients belong to users, who change
// them.
func (h *house) recipientGone(ctx context.Context, to string) error {
	target, ok := device.ParsePushTarget(to)
	if !ok {
		return nil
	}
	return h.devices.PushGone(ctx, target)
}
