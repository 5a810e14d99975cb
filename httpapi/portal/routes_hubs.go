package portal

import (
	"net/http"
	"strconv"

	"hubcloud/domain"
)

// hubPages is the pages that show what hubs do, and what members have them do.
func (p *Portal) hubPages() []Route {
	const hub = "/portal/{org}/hubs/{hub}"
	const device = hub + "/devices/{device}"
	return []Route{
		{Method: "GET", Pattern: "/portal/{org}", Handle: p.member((*visit).dashboard)},
		{
			Method:  "POST",
			Pattern: "/portal/{org}/stream",
			Held:    true,
			Handle:  p.member((*visit).stream),
		},

		{Method: "GET", Pattern: hub, Live: true, Handle: p.hub((*visit).hubPage)},
		{Method: "GET", Pattern: hub + "/events", Handle: p.hub((*visit).hubLog)},
		{Method: "POST", Pattern: hub + "/place", Handle: p.hubManager((*visit).placeHub)},
		{Method: "GET", Pattern: hub + "/reset-link", Handle: p.hubManager((*visit).confirmReset)},
		{Method: "POST", Pattern: hub + "/reset-link", Handle: p.hubManager((*visit).resetLink)},
		{
			Method:  "POST",
			Pattern: hub + "/pairing",
			Live:    true,
			Handle:  p.hubManager((*visit).openPairing),
		},
		{
			Method:  "POST",
			Pattern: hub + "/pairing/close",
			Live:    true,
			Handle:  p.hubManager((*visit).closePairing),
		},
		{
			Method:  "POST",
			Pattern: hub + "/removal",
			Live:    true,
			Handle:  p.hubManager((*visit).openRemoval),
		},
		{
			Method:  "POST",
			Pattern: hub + "/removal/close",
			Live:    true,
			Handle:  p.hubManager((*visit).closeRemoval),
		},
		{Method: "GET", Pattern: hub + "/place", Handle: p.hub((*visit).toHub)},
		{Method: "GET", Pattern: hub + "/pairing", Handle: p.hub((*visit).toHub)},
		{Method: "GET", Pattern: hub + "/pairing/close", Handle: p.hub((*visit).toHub)},
		{Method: "GET", Pattern: hub + "/removal", Handle: p.hub((*visit).toHub)},
		{Method: "GET", Pattern: hub + "/removal/close", Handle: p.hub((*visit).toHub)},

		{Method: "GET", Pattern: hub + "/names", Live: true, Handle: p.hub((*visit).deviceNames)},
		{Method: "GET", Pattern: hub + "/devices", Live: true, Handle: p.hub((*visit).devices)},
		{Method: "GET", Pattern: device, Live: true, Handle: p.hub((*visit).devicePage)},
		{Method: "GET", Pattern: device + "/card", Live: true, Handle: p.hub((*visit).deviceCard)},
		{
			Method:  "POST",
			Pattern: device + "/commands",
			Live:    true,
			Handle:  p.hub((*visit).command),
		},
		{
			Method:  "POST",
			Pattern: device + "/label",
			Live:    true,
			Handle:  p.hubManager((*visit).labelDevice),
		},
		{
			Method:  "POST",
			Pattern: device + "/forget",
			Live:    true,
			Handle:  p.hubManager((*visit).forgetDevice),
		},
		{Method: "GET", Pattern: device + "/commands", Handle: p.hub((*visit).toHub)},
		{Method: "GET", Pattern: device + "/label", Handle: p.hub((*visit).toDevice)},
		{Method: "GET", Pattern: device + "/forget", Handle: p.hub((*visit).toDevice)},
	}
}

// hub is for pages of a hub of the organization. Every member may see it and command its devices.
func (p *Portal) hub(
	handle func(*visit, domain.HubID) error,
) func(http.ResponseWriter, *http.Request, Caller) {
	return p.member(p.ownHub(handle))
}

// hubManager is for what changes a hub or what hangs on it.
func (p *Portal) hubManager(
	handle func(*visit, domain.HubID) error,
) func(http.ResponseWriter, *http.Request, Caller) {
	return p.manager(p.ownHub(handle))
}

// ownHub finds the hub of the path. One of another organization is not there.
func (p *Portal) ownHub(handle func(*visit, domain.HubID) error) handler {
	return func(v *visit) error {
		hub, ok := domain.ParseHubID(v.r.PathValue("hub"))
		if ok {
			var owner domain.HubAccess
			owner, ok = p.Owners.Hub(hub)
			ok = ok && owner.OrgID == v.member.OrgID
		}
		if !ok {
			return domain.ErrHubNotFound()
		}
		v.hub = hub
		return handle(v, hub)
	}
}

// toHub and toDevice lead to the pages that forms are on, as formOf does, with the query of the
// links on them.
func (v *visit) toHub(hub domain.HubID) error { return v.toPage(hubAddress(hub)) }

func (v *visit) toDevice(hub domain.HubID) error {
	device, err := v.device()
	if err != nil {
		return err
	}
	return v.toPage(deviceAddress(hub, device))
}

func (v *visit) toPage(page string) error {
	if query := v.r.URL.RawQuery; query != "" {
		page += "?" + query
	}
	v.redirectInOrg(page, "")
	return nil
}

// device gives the device id of the path.
func (v *visit) device() (int64, error) {
	id, err := strconv.ParseInt(v.r.PathValue("device"), 10, 64)
	if err != nil {
		return 0, domain.Errorf(domain.CodeNotFound, "no such device")
	}
	return id, nil
}

// hubAddress is the page of a hub, below the organization's.
func hubAddress(hub domain.HubID) string { return "hubs/" + string(hub) }

// deviceAddress is the page of a device.
func deviceAddress(hub domain.HubID, device int64) string {
	return hubAddress(hub) + "/devices/" + strconv.FormatInt(device, 10)
}
