package control_test

import (
	"testing"

	"hubcloud/projections/projectionstest"
)

const org = projectionstest.Org

func TestMain(m *testing.M) { projectionstest.Main(m) }
