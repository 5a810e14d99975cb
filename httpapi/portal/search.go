package portal

import (
	"cmp"
	"net/http"
	"net/url"
	"strings"

	"hubcloud/domain"
)

const (
	// longestSearch is how many characters of a search are used, and mostFound how many results of
	// a kind are shown.
	longestSearch = 100
	mostFound     = 8
)

// searchView is the page of the search over everything that an organization has.
type searchView struct {
	Layout
	Find   string
	Groups []searchGroup
}

// searchGroup is what was found of one kind.
type searchGroup struct {
	Label, Icon string
	Results     []searchResult
}

// searchResult is a link to something that was found. Its address is relative to the
// organization's.
type searchResult struct {
	Address, Name, Where string
	// Icon is a device's own, "" for the icon of the group. Value is what the device last reported,
	// "" for nothing, and Tag the class of its tag.
	Icon, Value, Tag string
}

// searchAll finds hubs, sites, rooms, devices, people and pages. Its address can be shared, and
// scripts load the results from it while a person types.
func (req *request) searchAll() error {
	view := searchView{Find: truncate(req.queryValue("q"), longestSearch)}
	if view.Find != "" {
		if err := req.findEverything(&view); err != nil {
			return err
		}
	}
	view.Layout = req.layout("Search", "")
	req.render(http.StatusOK, "search.html", view)
	return nil
}

// findEverything fills the page with what has all words of the search.
func (req *request) findEverything(view *searchView) error {
	words := strings.Fields(strings.ToLower(view.Find))
	has := func(texts ...string) bool {
		text := strings.ToLower(strings.Join(texts, " "))
		for _, word := range words {
			if !strings.Contains(text, word) {
				return false
			}
		}
		return true
	}
	add := func(label, icon string, results []searchResult) {
		if len(results) > 0 {
			results = results[:min(len(results), mostFound)]
			view.Groups = append(view.Groups, searchGroup{label, icon, results})
		}
	}
	sites, err := req.allSites()
	if err != nil {
		return err
	}
	hubs, err := req.findHubs("", "")
	if err != nil {
		return err
	}
	devices, err := req.Reported.FindDevices(req.ctx, req.org, view.Find, mainChannels, mostFound)
	if err != nil && codeOf(err) != domain.CodeServiceUnavailable {
		return err // while the reports cannot be read, the rest is found
	}
	people, err := req.ReadModels.FindMembers(req.ctx, req.org, view.Find, mostFound, "")
	if err != nil {
		return err
	}
	names := siteNames(sites)
	var found []searchResult
	for _, site := range sites {
		if has(site.Name, site.ID) {
			found = append(found, searchResult{Address: "sites/" + site.ID, Name: site.Name})
		}
	}
	add("Sites", "site", found)
	found = nil
	for _, hub := range hubs {
		name := ""
		if hub.Name != nil {
			name = *hub.Name
		}
		if has(name, string(hub.ID), strings.ReplaceAll(string(hub.ID), "-", ""), names[hub.SiteID]) {
			found = append(found, searchResult{
				Address: hubAddress(hub.ID), Name: cmp.Or(name, string(hub.ID)),
				Where: names[hub.SiteID],
			})
		}
	}
	add("Hubs", "hub", found)
	var rooms []searchResult
	found = nil
	known := map[string]bool{}
	for _, d := range devices {
		hub := cmp.Or(d.HubName, string(d.HubID))
		where := strings.Join(nonEmpty(d.Site, hub, d.Room), " › ")
		name := cmp.Or(d.Name, "Device "+formatInt(d.DeviceID))
		found = append(found, searchResult{
			deviceAddress(d.HubID, d.DeviceID), name, where, stateIcon(d.Key, string(d.Value)),
			formatValue(d.Key, d.Unit, d.Value), stateTag(d.Key, string(d.Value)),
		})
		room := hubAddress(d.HubID) + "?" + url.Values{"find": {d.Room}}.Encode()
		if d.Room != "" && has(d.Room) && !known[room] {
			known[room] = true
			rooms = append(rooms, searchResult{
				Address: room, Name: d.Room, Where: strings.Join(nonEmpty(d.Site, hub), " › "),
			})
		}
	}
	add("Rooms", "door", rooms)
	add("Devices", "device", found)
	found = nil
	org, err := req.Directory.Org(req.ctx, req.org)
	if err != nil {
		return err
	}
	for _, member := range people.Data {
		known, _ := org.Member(member.ID)
		found = append(found, searchResult{
			Address: "members?" + url.Values{"find": {member.Email}}.Encode(), Name: member.Email,
			Where: string(domain.AccessOf(member.Role, known.ViewOnly)),
		})
	}
	add("People", "people", found)
	found = nil
	for _, section := range sections {
		for _, page := range section.Pages {
			if has(section.Label, page.Label) {
				found = append(found, searchResult{
					Address: page.Address, Name: page.Label, Where: section.Label,
				})
			}
		}
	}
	addList := func(parameter, value, label string) {
		if has(label) {
			found = append(found, searchResult{
				Address: "devices?" + url.Values{parameter: {value}}.Encode(), Name: label,
				Where: "Devices",
			})
		}
	}
	for _, kind := range deviceKinds {
		addList("kind", kind, kind)
	}
	for _, search := range deviceSearches {
		addList("show", search.Name, search.Label)
	}
	add("Pages", "overview", found)
	return nil
}

// nonEmpty returns the texts that are not empty.
func nonEmpty(texts ...string) (kept []string) {
	for _, text := range texts {
		if text != "" {
			kept = append(kept, text)
		}
	}
	return kept
}
