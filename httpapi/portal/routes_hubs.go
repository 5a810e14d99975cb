package portal

import (
	"net/http"
	"strconv"

	"hubcloud/domain"
)

// hubRoutes are the dashboard and the pages and actions of hubs and devices.
func (p *Portal) hubRoutes() []Route {
	const hub = "/portal/{org}/hubs/{hub}"
	const device = hub + "/devices/{device}"
	return []Route{
		{Method: "GET", Pattern: "/portal/{org}", Handle: p.member((*request).dashboard)},
		{
			Method:    "POST",
			Pattern:   "/portal/{org}/stream",
			LongLived: true,
			Handle:    p.member((*request).stream),
		},

		{Method: "GET", Pattern: hub, AsksHub: true, Handle: p.hub((*request).hubPage)},
		{Method: "GET", Pattern: hub + "/events", Handle: p.hub((*request).hubLog)},
		{Method: "POST", Pattern: hub + "/place", Handle: p.hubManager((*request).updateHub)},
		{
			Method:  "GET",
			Pattern: hub + "/reset-link",
			Handle:  p.hubManager((*request).confirmReset),
		},
		{Method: "POST", Pattern: hub + "/reset-link", Handle: p.hubManager((*request).resetLink)},
		{
			Method:  "POST",
			Pattern: hub + "/pairing",
			AsksHub: true,
			Handle:  p.hubManager((*request).openPairing),
		},
		{
			Method:  "POST",
			Pattern: hub + "/pairing/close",
			AsksHub: true,
			Handle:  p.hubManager((*request).closePairing),
		},
		{
			Method:  "POST",
			Pattern: hub + "/removal",
			AsksHub: true,
			Handle:  p.hubManager((*request).openRemoval),
		},
		{
			Method:  "POST",
			Pattern: hub + "/removal/close",
			AsksHub: true,
			Handle:  p.hubManager((*request).closeRemoval),
		},
		{Method: "GET", Pattern: hub + "/place", Handle: p.hub((*request).redirectToHub)},
		{Method: "GET", Pattern: hub + "/pairing", Handle: p.hub((*request).redirectToHub)},
		{Method: "GET", Pattern: hub + "/pairing/close", Handle: p.hub((*request).redirectToHub)},
		{Method: "GET", Pattern: hub + "/removal", Handle: p.hub((*request).redirectToHub)},
		{Method: "GET", Pattern: hub + "/removal/close", Handle: p.hub((*request).redirectToHub)},

		{
			Method:  "GET",
			Pattern: hub + "/names",
			AsksHub: true,
			Handle:  p.hub((*request).deviceNames),
		},
		{
			Method:  "GET",
			Pattern: hub + "/devices",
			AsksHub: true,
			Handle:  p.hub((*request).devices),
		},
		{Method: "GET", Pattern: device, AsksHub: true, Handle: p.hub((*request).devicePage)},
		{
			Method:  "GET",
			Pattern: device + "/card",
			AsksHub: true,
			Handle:  p.hub((*request).deviceCard),
		},
		{
			Method:  "POST",
			Pattern: device + "/commands",
			AsksHub: true,
			Handle:  p.hub((*request).command),
		},
		{
			Method:  "POST",
			Pattern: device + "/label",
			AsksHub: true,
			Handle:  p.hubManager((*request).labelDevice),
		},
		{
			Method:  "POST",
			Pattern: device + "/forget",
			AsksHub: true,
			Handle:  p.hubManager((*request).forgetDevice),
		},
		{Method: "GET", Pattern: device + "/commands", Handle: p.hub((*request).redirectToHub)},
		{Method: "GET", Pattern: device + "/label", Handle: p.hub((*request).redirectToDevice)},
		{Method: "GET", Pattern: device + "/forget", Handle: p.hub((*request).redirectToDevice)},
	}
}

// hub wraps a page of one of the organization's hubs, for every member.
func (p *Portal) hub(
	handle func(*request, domain.HubID) error,
) func(http.ResponseWriter, *http.Request, RequestInfo) {
	return p.member(p.withHub(handle))
}

// hubManager wraps an action on a hub or its devices, for owners and admins.
func (p *Portal) hubManager(
	handle func(*request, domain.HubID) error,
) func(http.ResponseWriter, *http.Request, RequestInfo) {
	return p.manager(p.withHub(handle))
}

// withHub parses the hub of the path. A hub of another organization is not found.
func (p *Portal) withHub(handle func(*request, domain.HubID) error) handler {
	return func(req *request) error {
		hub, ok := domain.ParseHubID(req.http.PathValue("hub"))
		if ok {
			var owner domain.HubAccess
			owner, ok = p.Owners.Hub(hub)
			ok = ok && owner.OrgID == req.member.OrgID
		}
		if !ok {
			return domain.ErrHubNotFound()
		}
		req.hub = hub
		return handle(req, hub)
	}
}

// toHub and toDevice lead to the pages that forms are on, as redirectToForm does, with the query of
// the links on them.
func (req *request) redirectToHub(hub domain.HubID) error {
	return req.redirectKeepingQuery(hubAddress(hub))
}

func (req *request) redirectToDevice(hub domain.HubID) error {
	device, err := req.deviceID()
	if err != nil {
		return err
	}
	return req.redirectKeepingQuery(deviceAddress(hub, device))
}

func (req *request) redirectKeepingQuery(page string) error {
	if query := req.http.URL.RawQuery; query != "" {
		page += "?" + query
	}
	req.redirectInOrg(page, "")
	return nil
}

// deviceID returns the device id of the path.
func (req *request) deviceID() (int64, error) {
	id, err := strconv.ParseInt(req.http.PathValue("device"), 10, 64)
	if err != nil {
		return 0, domain.Errorf(domain.CodeNotFound, "no such device")
	}
	return id, nil
}

// hubAddress returns the address of a hub's page, relative to the organization's.
func hubAddress(hub domain.HubID) string { return "hubs/" + string(hub) }

// deviceAddress returns the address of a device's page, relative to the organization's.
func deviceAddress(hub domain.HubID, device int64) string {
	return hubAddress(hub) + "/devices/" + strconv.FormatInt(device, 10)
}
