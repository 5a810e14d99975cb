package readmodel_test

import (
	"testing"

	"hubcloud/projections/projectionstest"
)

// The tests' two organizations.
const (
	org   = projectionstest.Org
	other = projectionstest.OtherOrg
)

// Ids of the tests' things by number.
var (
	hubID        = projectionstest.HubID
	siteID       = projectionstest.SiteID
	memberID     = projectionstest.MemberID
	invitationID = projectionstest.InvitationID
)

func TestMain(m *testing.M) { projectionstest.Main(m) }
