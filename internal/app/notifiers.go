package app

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
func (h *Rooms) notifiers() (list []notify.Notifier, err error) {
	if h.Config.Messages.Capture {
		h.Captured = capture.New(store.Captured{DB: h.DB}, h.ring)
		return h.Captured.Notifiers(), nil
	}
	for _, p := range h.Config.Notifiers() {
		if !p.Configured() {
			continue
		}
		path := "messages." + p.Section()
		n, err := p.Open(notify.Environment{
			Title:  h.Config.Messages.Title,
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
func (h *Rooms) recipientGone(ctx context.Context, to string) error {
	target, ok := device.ParsePushTarget(to)
	if !ok {
		return nil
	}
	return h.devices.PushGone(ctx, target)
}
