package projector_test

import (
	"testing"

	"hubcloud/projections/projectionstest"
)

// The tests' two organizations.
const (
	org   = projectionstest.Org
	other = projectionstest.OtherOrg
)

func TestMain(m *testing.M) { projectionstest.Main(m) }
