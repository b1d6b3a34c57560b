//go:build !linux

package main

// keepMemoryPrivate does nothing: other systems have their own ways.
func keepMemoryPrivate() error { return nil }
