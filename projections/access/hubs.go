package access

import "hubcloud/domain"

// hubs are the hubs that organizations have added.
type hubs struct {
	access map[domain.HubID]domain.HubAccess
	// byOrg has the hubs of each organization that has any.
	byOrg map[string]map[domain.HubID]struct{}
	// siteIDs has one copy of each site's id, which its hubs share.
	siteIDs map[string]string
	// changed signals that an organization gets, moves or loses a hub.
	changed signals
}

// signals has, for organizations of which someone waits for it, a channel that is closed at a
// change of the organization.
type signals map[string]chan struct{}

func newHubs() hubs {
	return hubs{
		access:  map[domain.HubID]domain.HubAccess{},
		byOrg:   map[string]map[domain.HubID]struct{}{},
		siteIDs: map[string]string{},
		changed: signals{},
	}
}

// of returns the hubs of an organization.
func (h *hubs) of(org string) []domain.HubID {
	ids := make([]domain.HubID, 0, len(h.byOrg[org]))
	for id := range h.byOrg[org] {
		ids = append(ids, id)
	}
	return ids
}

// put adds a hub to an organization.
func (h *hubs) put(id domain.HubID, access domain.HubAccess) {
	h.remove(id)
	access.SiteID = h.siteID(access.SiteID)
	h.access[id] = access
	if h.byOrg[access.OrgID] == nil {
		h.byOrg[access.OrgID] = map[domain.HubID]struct{}{}
	}
	h.byOrg[access.OrgID][id] = struct{}{}
	h.changed.send(access.OrgID)
}

// remove removes a hub from its organization, if it has one.
func (h *hubs) remove(id domain.HubID) {
	access, ok := h.access[id]
	if !ok {
		return
	}
	delete(h.access, id)
	delete(h.byOrg[access.OrgID], id)
	if len(h.byOrg[access.OrgID]) == 0 {
		delete(h.byOrg, access.OrgID)
	}
	h.changed.send(access.OrgID)
}

// move sets the site of a hub that an organization has.
func (h *hubs) move(id domain.HubID, site string) {
	if access, ok := h.access[id]; ok {
		access.SiteID = h.siteID(site)
		h.access[id] = access
		h.changed.send(access.OrgID)
	}
}

// setEpoch sets the epoch of a hub that an organization has.
func (h *hubs) setEpoch(id domain.HubID, epoch domain.Epoch) {
	if access, ok := h.access[id]; ok {
		access.Epoch = epoch
		h.access[id] = access
	}
}

// of returns the channel of an organization.
func (s signals) of(org string) <-chan struct{} {
	c, ok := s[org]
	if !ok {
		c = make(chan struct{})
		s[org] = c
	}
	return c
}

// send closes the channel of an organization.
func (s signals) send(org string) {
	if c, ok := s[org]; ok {
		delete(s, org)
		close(c)
	}
}

// sendAll closes all channels.
func (s signals) sendAll() {
	for org := range s {
		s.send(org)
	}
}

// siteID returns the one copy of a site's id.
func (h *hubs) siteID(id string) string {
	if known, ok := h.siteIDs[id]; ok {
		return known
	}
	h.siteIDs[id] = id
	return id
}
