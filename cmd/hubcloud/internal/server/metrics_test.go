package server

import (
	"net"
	"reflect"
	"testing"
)

// Profiles and metrics need no authentication, so the admin port must be on loopback by default.
func TestAdminPortIsPrivate(t *testing.T) {
	t.Parallel()
	flag, _ := reflect.TypeFor[Config]().FieldByName("Admin")
	host, _, err := net.SplitHostPort(flag.Tag.Get("default"))
	if err != nil || !net.ParseIP(host).IsLoopback() {
		t.Errorf(
			"the default of --admin is %q, %v; want a loopback address", flag.Tag.Get("default"),
			err,
		)
	}
}
