package portal

import (
	"net/http"
	"time"

	"hubcloud/domain"
	"hubcloud/domain/attention"
)

// designHub is a hub that does not exist.
const designHub = "hub-none-0000-0001"

// designView is the page that shows each component of pages in every state, for whoever changes one.
type designView struct {
	Layout
	Colors, Sizes []string
	Devices       []hubDevice
	Code          codeForm
	Attention     attentionView
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
		{"Stairs", "level", "40", true}, {"Office", "heating_setpoint", "21", true},
		{"Store", "mode", `"heat"`, true}, {"Lamp", "color", `{"red":255,"green":120,"blue":0}`, true},
	} {
		observed := domain.FormatTime(time.Now().Add(-time.Hour))
		channel := channelOf(designHub, 1, domain.Channel{
			Key: s.key, Value: []byte(s.value), Available: s.available, Writable: true,
			Status: domain.ChannelSynchronized, ObservedAt: &observed,
		}, false)
		channel.Old = !s.available
		view.Devices = append(view.Devices, hubDevice{
			Hub: designHub, ID: int64(len(view.Devices) + 1), Name: s.name,
			Manufacturer: "Maker", Model: "Model 1", Available: s.available,
			Channels: []deviceChannel{channel},
		})
	}
	view.Attention = designAttention(view.Layout)
	req.render(http.StatusOK, "design.html", view)
	return nil
}

// designAttention returns an alarm, a group of warnings, and an alarm that somebody has seen.
func designAttention(layout Layout) attentionView {
	row := func(kind attention.Kind, severity domain.Severity, title, name string) conditionRow {
		return conditionRow{
			Condition: attention.Condition{
				Kind: kind, Severity: severity, Hub: designHub, DeviceID: 1, Name: name,
				Since: layout.Now.Add(-time.Hour),
			},
			Title: title, Advice: "What to do about it.", Site: "North Campus", HubName: "Lobby",
		}
	}
	leak := row(attention.Leak, domain.SeverityAlarm, "Water leak", "Boiler room")
	low := row(attention.Battery, domain.SeverityWarning, "Battery low", "Front door")
	each := []conditionRow{low, low}
	low.Count, low.Each = len(each), each
	jam := row(attention.Jammed, domain.SeverityAlarm, "Jammed", "Back door")
	jam.SeenBy, jam.SeenAt = "anna@example.com", layout.Now.Add(-time.Minute)
	return attentionView{
		Layout: layout, Urgent: []conditionRow{leak}, Others: []conditionRow{low},
		Seen: []conditionRow{jam}, Alarms: 1, Warnings: 1, SeenAll: 1,
	}
}
