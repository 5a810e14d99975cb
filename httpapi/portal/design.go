package portal

import (
	"net/http"
	"time"

	"hubcloud/domain"
)

// designView is the page that shows each component of pages in every state, for whoever changes one.
type designView struct {
	Layout
	Colors, Sizes []string
	Devices       []hubDevice
	Code          codeForm
}

// designHome redirects to the page of the person's first organization.
func (req *request) designHome() error {
	memberships := req.People.Memberships(req.session.Email)
	if len(memberships) == 0 {
		return errPageNotFound
	}
	req.redirect(memberships[0].OrgID+"/design", "")
	return nil
}

// design shows the components. Only installations for development have the page.
func (req *request) design() error {
	if req.Environment != domain.EnvironmentDev {
		return errPageNotFound
	}
	view := designView{
		Layout: req.layout("Design", ""),
		Colors: []string{
			"ground", "side", "surface", "sunken", "line", "edge", "text", "quiet", "brand",
			"brand-soft", "good", "good-soft", "active", "active-soft", "wait", "wait-soft", "bad",
			"bad-soft",
		},
		Sizes: []string{"tiny", "small", "text", "section", "title", "figure"},
		Code: codeFormOf(domain.CredentialTerms{Label: "Anna", Schedule: []domain.WeeklyTime{
			{Days: []string{"mon", "tue"}, From: "08:00", Until: "17:00"},
		}}, time.UTC),
	}
	view.Code.ID = "-design"
	for _, s := range []struct {
		name, key, value string
		available        bool
	}{
		{"Front door", "lock", "true", true}, {"Shed door", "lock", "false", true},
		{"Back door", "contact", "true", true}, {"Window", "contact", "false", true},
		{"Landing alarm", "smoke", "true", true}, {"Cellar", "leak", "true", true},
		{"Desk outlet", "switch", "true", true}, {"Hall", "temperature", "21.5", true},
		{"Garage", "barrier", "true", false}, {"Yard", "motion", "true", true},
	} {
		channel := channelOf("", 1, domain.Channel{
			Key: s.key, Value: []byte(s.value), Available: s.available,
			Status: domain.ChannelSynchronized,
		}, false)
		view.Devices = append(view.Devices, hubDevice{
			Hub: "hub-demo-0000-0001", ID: int64(len(view.Devices) + 1), Name: s.name,
			Manufacturer: "Maker", Model: "Model 1", Available: s.available,
			Channels: []deviceChannel{channel},
		})
	}
	req.render(http.StatusOK, "design.html", view)
	return nil
}
