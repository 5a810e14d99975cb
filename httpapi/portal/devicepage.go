package portal

import (
	"crypto/rand"
	"net/http"
	"strconv"
	"time"

	"hubcloud/domain"
	"hubcloud/httpapi/portal/live"
)

// cardView is a device on a page.
type cardView struct {
	Shell
	live.Device
	// From is the page that its forms come back to: device, or "" for the hub's.
	From string
}

// card is for templates: it puts a device into the frame of its page.
func card(shell Shell, device live.Device, from string) cardView {
	return cardView{shell, device, from}
}

// channelView is a channel on a page, with a key under which a command from here is sent once,
// however often the form is.
type channelView struct {
	Shell
	live.Channel
	From string
	Once string
}

// channel is for templates.
func channel(card cardView, c live.Channel) channelView {
	return channelView{card.Shell, c, card.From, "portal-" + rand.Text()}
}

type deviceView struct {
	hubHead
	Card   cardView
	Charts live.Charts
	// Hours is how far back the charts go.
	Hours   int
	Refused refusedForm
	Data    liveData
}

// chartHours are the times that charts are drawn over.
var chartHours = []int{1, 6, 24}

// HourChoices gives them to the page.
func (deviceView) HourChoices() []int { return chartHours }

// devicePage shows one device.
func (v *visit) devicePage(hub domain.HubID) error {
	id, err := v.device()
	if err != nil {
		return err
	}
	return v.showDevice(http.StatusOK, hub, id, refusedForm{})
}

// showDevice shows a device's page: its channels, charts of what it measured, what it is called,
// where it is, and what was refused of that.
func (v *visit) showDevice(status int, hub domain.HubID, id int64, refused refusedForm) error {
	ctx := v.r.Context()
	device, err := v.p.Live.DeviceOf(ctx, v.member.OrgID, hub, id)
	if err != nil {
		return err
	}
	view := deviceView{Hours: chartHours[0], Refused: refused}
	if hours, err := strconv.Atoi(v.r.URL.Query().Get("hours")); err == nil && hours > 0 &&
		hours <= 24 {
		view.Hours = hours
	}
	if view.Charts, err = v.p.Live.ChartsOf(ctx, device, time.Duration(view.Hours)*time.Hour); err != nil {
		return err
	}
	if view.hubHead, err = v.hubHead(hub, device.Name); err != nil {
		return err
	}
	view.Scripts = []string{"hub.js"}
	view.Data = v.liveData(view.Shell, hub)
	view.Card = card(view.Shell, device, "device")
	v.render(status, "device.html", view)
	return nil
}

// deviceCard answers with a device as the hub's page shows it, for the page's script.
func (v *visit) deviceCard(hub domain.HubID) error {
	id, err := v.device()
	if err != nil {
		return err
	}
	device, err := v.p.Live.DeviceOf(v.r.Context(), v.member.OrgID, hub, id)
	if err != nil {
		return err
	}
	up, from := 2, ""
	if v.r.URL.Query().Get("from") == "device" {
		up, from = 4, "device"
	}
	v.render(http.StatusOK, "device-card", card(v.fragment(up), device, from))
	return nil
}
