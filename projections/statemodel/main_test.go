package statemodel_test

import (
	"testing"

	"hubcloud/projections/projectionstest"
)

func TestMain(m *testing.M) { projectionstest.Main(m) }
