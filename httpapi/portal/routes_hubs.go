package portal

import (
	"strconv"

	"hubcloud/domain"
)

// hubRoutes are the dashboard and the pages and actions of hubs and devices.
func (p *Portal) hubRoutes() []Route {
	const hub = "/portal/{org}/hubs/{hub}"
	const device = hub + "/devices/{device}"
	const hubPage, devicePage = "hubs/{hub}", "hubs/{hub}/devices/{device}"
	return []Route{
		get("/portal/{org}", p.member((*request).dashboard)),
		post("/portal/{org}/stream", p.member((*request).openStream)).longLived(),

		get("/portal/{org}/attention", p.member((*request).attentionPart)),
		post("/portal/{org}/attention/seen", p.operator((*request).seeCondition)).on(""),

		get(hub, p.hub((*request).hubPage)).askingHub(),
		get(hub+"/events", p.hub((*request).orgEvents)),
		get(hub+"/events.csv", p.hub(exclusive((*request).exportEvents))).longLived(),
		post(hub+"/place", p.hubManager((*request).updateHub)).on(hubPage),
		get(hub+"/reset-link", p.hubManager((*request).confirmReset)),
		post(hub+"/reset-link", p.hubManager((*request).resetLink)),
		get(hub+"/remove", p.hubManager((*request).confirmHubRemoval)),
		post(hub+"/remove", p.hubManager((*request).removeHub)),
		post(hub+"/pairing", p.hubManager((*request).openPairing)).askingHub().on(hubPage),
		post(hub+"/pairing/close", p.hubManager((*request).closePairing)).askingHub().on(hubPage),
		post(hub+"/removal", p.hubManager((*request).openRemoval)).askingHub().on(hubPage),
		post(hub+"/removal/close", p.hubManager((*request).closeRemoval)).askingHub().on(hubPage),
		get(hub+"/names", p.hub((*request).writeNames)).askingHub(),
		get(hub+"/devices", p.hub((*request).devices)).askingHub(),
		get(device, p.device((*request).devicePage)).askingHub(),
		get(device+"/card", p.device((*request).deviceCard)).askingHub(),
		post(device+"/commands", p.operator(p.withDevice((*request).command))).askingHub().on(hubPage),
		post(device+"/label", p.manager(p.withDevice((*request).labelDevice))).askingHub().on(devicePage),
		post(device+"/forget", p.manager(p.withDevice((*request).forgetDevice))).askingHub().on(devicePage),
	}
}

// hub and device wrap a page of one of the organization's hubs, or of one of its devices, for every
// member.
func (p *Portal) hub(handle handler) routeHandler    { return p.member(p.withHub(handle)) }
func (p *Portal) device(handle handler) routeHandler { return p.member(p.withDevice(handle)) }

// hubManager wraps an action on a hub, for owners and admins.
func (p *Portal) hubManager(handle handler) routeHandler { return p.manager(p.withHub(handle)) }

// withHub parses the hub of the path. A hub of another organization is not found.
func (p *Portal) withHub(handle handler) handler {
	return func(req *request) error {
		hub, ok := domain.ParseHubID(req.http.PathValue("hub"))
		if owner, owned := p.Hubs.Hub(hub); !ok || !owned || owner.OrgID != req.org {
			return domain.ErrHubNotFound()
		}
		req.hub = hub
		return handle(req)
	}
}

// withDevice parses the hub and the device of the path.
func (p *Portal) withDevice(handle handler) handler {
	return p.withHub(func(req *request) (err error) {
		if req.device, err = strconv.ParseInt(req.http.PathValue("device"), 10, 64); err != nil {
			return domain.Errorf(domain.CodeNotFound, "no such device")
		}
		return handle(req)
	})
}

// hubAddress returns the address of a hub's page, relative to the organization's.
func hubAddress(hub domain.HubID) string { return "hubs/" + string(hub) }

// deviceAddress returns the address of a device's page, relative to the organization's.
func deviceAddress(hub domain.HubID, device int64) string {
	return hubAddress(hub) + "/devices/" + strconv.FormatInt(device, 10)
}
