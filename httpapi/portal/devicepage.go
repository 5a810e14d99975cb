package portal

import (
	"crypto/rand"
	"net/http"
	"strconv"
	"time"
)

// cardView is the card of a device.
type cardView struct {
	Layout
	hubDevice
	// From is the page that the card's forms return to: "device", or "" for the hub's.
	From string
}

// card is the template function that returns the card of a device on a page.
func card(layout Layout, device hubDevice, from string) cardView {
	return cardView{layout, device, from}
}

// channelView is a channel on a card. Once is the idempotency key of its form: a second submission
// of the form sends no second command.
type channelView struct {
	Layout
	deviceChannel
	// Device is the name of its device.
	Device string
	From   string
	Once   string
}

// channel is the template function that returns a channel on a card.
func channel(card cardView, c deviceChannel) channelView {
	return channelView{card.Layout, c, card.Name, card.From, "portal-" + rand.Text()}
}

type deviceView struct {
	hubHead
	Card   cardView
	Charts deviceCharts
	// Hours is how far back the charts go.
	Hours    int
	Rejected rejectedForm
	Data     scriptData
}

// chartData returns the charts for the page's script.
func (v deviceView) ChartData() []chartData {
	data := []chartData{}
	for i := range v.Charts.Charts {
		data = append(data, v.Charts.Charts[i].Data())
	}
	return data
}

// chartHours are the time spans of charts to choose from.
var chartHours = []int{1, 6, 24}

// HourChoices returns chartHours.
func (deviceView) HourChoices() []int { return chartHours }

// devicePage shows one device.
func (req *request) devicePage() error {
	return req.showDevice(http.StatusOK, rejectedForm{})
}

// showDevice shows the page of the device, with a rejected form if there is one.
func (req *request) showDevice(status int, rejected rejectedForm) error {
	device, err := req.getDevice(req.ctx, req.org, req.hub, req.device)
	if err != nil {
		return err
	}
	view := deviceView{Hours: chartHours[0], Rejected: rejected}
	if hours, err := strconv.Atoi(req.queryValue("hours")); err == nil && hours > 0 && hours <= 24 {
		view.Hours = hours
	}
	period := time.Duration(view.Hours) * time.Hour
	if view.Charts, err = req.drawCharts(req.ctx, device, period); err != nil {
		return err
	}
	if view.hubHead, err = req.hubHead(device.Name); err != nil {
		return err
	}
	view.Scripts = []string{"hub.js"}
	view.Charting = len(view.Charts.Charts) > 0
	view.Data = req.scriptData(view.Layout, "", req.hub)
	view.Card = card(view.Layout, device, "device")
	req.render(status, "device.html", view)
	return nil
}

// deviceCard answers with the card of a device, for the page's script.
func (req *request) deviceCard() error {
	device, err := req.getDevice(req.ctx, req.org, req.hub, req.device)
	if err != nil {
		return err
	}
	up, from := 2, ""
	if req.queryValue("from") == "device" {
		up, from = 4, "device"
	}
	req.render(http.StatusOK, "device-card", card(req.fragment(up), device, from))
	return nil
}
