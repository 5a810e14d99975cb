package portal

import (
	"cmp"
	"crypto/rand"
	"net/http"
	"slices"
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
	chartPeriod
	// Door reports whether the device has a lock or a barrier. History is what happened to it in the
	// period, newest first: at most shownHistory, and More reports that there is more.
	Door    bool
	History []orgEventRow
	More    bool
	// Log is the query of the event log with all of it.
	Log      string
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

// chartPeriod is the period of the charts.
type chartPeriod struct {
	// Hours is how far back from now it goes; 0 for one with other bounds.
	Hours int
	// From is when it begins, and To when it ends; zero for now.
	From, To time.Time
	// PeriodWrong reports that the address has none, and the page shows another one.
	PeriodWrong bool
	// TypedFrom and TypedTo are the values of the time fields, in the zone Zone. Earliest is the first
	// that the log has.
	TypedFrom, TypedTo, Earliest, Zone, ZoneText string
}

// chartPeriod reads the period from the page's address: hours, usual ones without any, or from and
// to, within the retention.
func (req *request) chartPeriod(usual int) (p chartPeriod) {
	now, zone := req.info.At, req.zone()
	earliest := now.Add(-req.Retention)
	p.Zone, p.ZoneText = zoneTexts(now.In(zone))
	p.Earliest = earliest.In(zone).Format(clockLayout)
	from, begins := parseClock(req.queryValue("from"), req.typedZone())
	to, ends := parseClock(req.queryValue("to"), req.typedZone())
	if ends && !begins {
		from = to.Add(-time.Hour)
	}
	if from.Before(earliest) {
		from = earliest
	}
	if !ends || !to.Before(now) {
		to = time.Time{}
	}
	p.PeriodWrong = (begins || ends) && !from.Before(cmp.Or(to, now))
	if (begins || ends) && !p.PeriodWrong {
		p.From, p.To, p.TypedFrom = from, to, from.In(zone).Format(clockLayout)
		if !to.IsZero() {
			p.TypedTo = to.In(zone).Format(clockLayout)
		}
		return p
	}
	p.Hours = usual
	if hours, err := strconv.Atoi(req.queryValue("hours")); err == nil && hours > 0 && hours <= 24 {
		p.Hours = hours
	}
	p.From = now.Add(-min(time.Duration(p.Hours)*time.Hour, req.Retention))
	return p
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
	view := deviceView{Rejected: rejected}
	if view.Door = device.isDoor(); view.Door {
		view.chartPeriod = req.chartPeriod(chartHours[len(chartHours)-1])
		err = req.readHistory(&view)
	} else {
		view.chartPeriod = req.chartPeriod(chartHours[0])
	}
	if err != nil {
		return err
	}
	to := cmp.Or(view.To, req.Now())
	if view.Charts, err = req.drawCharts(req.ctx, device, view.From, to); err != nil {
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

// isDoor reports whether the device has a lock or a barrier.
func (d hubDevice) isDoor() bool {
	return slices.ContainsFunc(d.Channels, func(c deviceChannel) bool {
		return c.Key == "lock" || c.Key == "barrier"
	})
}

// shownHistory is how many events of a door its page shows.
const shownHistory = 20

// readHistory reads what happened to a door in the page's period, and who did it.
func (req *request) readHistory(view *deviceView) error {
	search, err := req.newEventSearch(orgEventsQuery{
		Hub: req.hub, Device: formatInt(req.device), Kind: "doors", From: view.From, To: view.To,
	})
	if err != nil {
		return err
	}
	found, err := req.newestEvents(search, eventPlace{})
	view.History = found.Rows[:min(len(found.Rows), shownHistory)]
	view.More = len(found.Rows) > shownHistory || found.Older != eventPlace{}
	view.Log = search.query.encode()
	return err
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
