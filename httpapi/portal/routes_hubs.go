package portal

import (
	"strconv"

	"hubcloud/domain"
)

// hubRoutes are the dashboard and the pages and actions of hubs and devices.
func (p *Portal) hubRoutes() []Route {
	const hub = "/portal/{org}/hubs/{hub}"
	const device = hub + "/devices/{device}"
	return []Route{
		get("/portal/{org}", p.member((*request).dashboard)),
		post("/portal/{org}/stream", p.member((*request).stream)).longLived(),

		get("/portal/{org}/attention", p.member((*request).attentionPart)),
		post("/portal/{org}/attention/seen", p.operator((*request).seeCondition)),
		get("/portal/{org}/attention/seen", p.member(redirectToForm(""))),

		get(hub, p.hub((*request).hubPage)).askingHub(),
		get(hub+"/events", p.hub((*request).hubLog)).askingHub(),
		get(hub+"/events.csv", p.hub((*request).exportLog)).longLived(),
		post(hub+"/place", p.hubManager((*request).updateHub)),
		get(hub+"/reset-link", p.hubManager((*request).confirmReset)),
		post(hub+"/reset-link", p.hubManager((*request).resetLink)),
		get(hub+"/remove", p.hubManager((*request).confirmHubRemoval)),
		post(hub+"/remove", p.hubManager((*request).removeHub)),
		post(hub+"/pairing", p.hubManager((*request).openPairing)).askingHub(),
		post(hub+"/pairing/close", p.hubManager((*request).closePairing)).askingHub(),
		post(hub+"/removal", p.hubManager((*request).openRemoval)).askingHub(),
		post(hub+"/removal/close", p.hubManager((*request).closeRemoval)).askingHub(),
		get(hub+"/place", p.hub((*request).redirectToHub)),
		get(hub+"/pairing", p.hub((*request).redirectToHub)),
		get(hub+"/pairing/close", p.hub((*request).redirectToHub)),
		get(hub+"/removal", p.hub((*request).redirectToHub)),
		get(hub+"/removal/close", p.hub((*request).redirectToHub)),

		get(hub+"/names", p.hub((*request).deviceNames)).askingHub(),
		get(hub+"/devices", p.hub((*request).devices)).askingHub(),
		get(device, p.hub((*request).devicePage)).askingHub(),
		get(device+"/card", p.hub((*request).deviceCard)).askingHub(),
		post(device+"/commands", p.hubOperator((*request).command)).askingHub(),
		post(device+"/label", p.hubManager((*request).labelDevice)).askingHub(),
		post(device+"/forget", p.hubManager((*request).forgetDevice)).askingHub(),
		get(device+"/commands", p.hub((*request).redirectToHub)),
		get(device+"/label", p.hub((*request).redirectToDevice)),
		get(device+"/forget", p.hub((*request).redirectToDevice)),
	}
}

// hub wraps a page of one of the organization's hubs, for every member.
func (p *Portal) hub(handle func(*request, domain.HubID) error) routeHandler {
	return p.member(p.withHub(handle))
}

// hubManager wraps an action on a hub or its devices, for owners and admins.
func (p *Portal) hubManager(handle func(*request, domain.HubID) error) routeHandler {
	return p.manager(p.withHub(handle))
}

// withHub parses the hub of the path. A hub of another organization is not found.
func (p *Portal) withHub(handle func(*request, domain.HubID) error) handler {
	return func(req *request) error {
		hub, ok := domain.ParseHubID(req.http.PathValue("hub"))
		if ok {
			var owner domain.HubAccess
			owner, ok = p.Hubs.Hub(hub)
			ok = ok && owner.OrgID == req.member.OrgID
		}
		if !ok {
			return domain.ErrHubNotFound()
		}
		req.hub = hub
		return handle(req, hub)
	}
}

// redirectToHub redirects to the page that a form about a hub is on, as redirectToForm does, and
// keeps the query.
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
