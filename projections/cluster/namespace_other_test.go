//go:build !linux

package cluster

import "errors"

// contain cannot be done on this system.
func contain(string) error { return errors.ErrUnsupported }
