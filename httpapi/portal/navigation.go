package portal

import "net/http"

// sideCookie remembers that a person has collapsed the side bar. A script sets it; it is no secret.
const sideCookie = "hubcloud_side"

// section is an entry of the side bar, with its pages.
type section struct {
	// Name is the Section of the pages' layouts, and Icon one of icons.
	Name, Label, Icon string
	// Pages are the section's pages. The first opens with the entry; all are tabs if there are more.
	Pages []sectionPage
}

// sectionPage is one page of a section. Its address is relative to the organization's, so that one
// beginning with "../" is outside the portal.
type sectionPage struct{ Address, Label string }

// sections are the entries of the side bar, in order.
var sections = []section{
	{"overview", "Overview", "overview", []sectionPage{{"", "Overview"}}},
	{"sites", "Sites", "site", []sectionPage{{"sites", "Sites"}, {"rooms", "Rooms"}}},
	{"devices", "Devices", "device", []sectionPage{{"devices", "Devices"}}},
	{"events", "Events", "events", []sectionPage{
		{"events", "Events"}, {"book", "Book"}, {"activity", "Activity"}, {"activity/commands", "Commands"},
	}},
	{"people", "People", "people", []sectionPage{
		{"members", "People"}, {"codes", "Door codes"},
	}},
	{"developers", "Developers", "developers", []sectionPage{
		{"keys", "API keys"}, {"webhooks", "Webhooks"}, {"readers", "Readers"}, {"../../v1/reference", "API reference"},
		{"../../docs/", "Guides"},
	}},
	{"settings", "Settings", "settings", []sectionPage{
		{"settings", "General"}, {"notifications", "Notifications"},
	}},
}

// navLink is a link of the side bar or a tab.
type navLink struct {
	Address, Label, Icon string
	Current, Alarms      bool
}

// Navigation returns the links of the side bar.
func (l Layout) Navigation() []navLink {
	links := make([]navLink, len(sections))
	for i, s := range sections {
		links[i] = navLink{
			Address: l.inOrg(s.Pages[0].Address), Label: s.Label, Icon: s.Icon,
			Current: s.Name == l.Section, Alarms: i == 0,
		}
	}
	return links
}

// Tabs returns links to the pages of the section; nil if it has only one, or the page is an inner one.
func (l Layout) Tabs() (tabs []navLink) {
	for _, s := range sections {
		if s.Name != l.Section || len(s.Pages) < 2 || l.Inner {
			continue
		}
		for _, page := range s.Pages {
			tabs = append(tabs, navLink{
				Address: l.inOrg(page.Address), Label: page.Label, Current: page.Address == l.page,
			})
		}
	}
	return tabs
}

// inOrg returns the address of a page from the current one.
func (l Layout) inOrg(page string) string {
	if page == "" {
		return l.Root + l.Member.OrgID
	}
	return l.Root + l.Member.OrgID + "/" + page
}

// Initial is the first letter of the person's address.
func (l Layout) Initial() string {
	for _, r := range l.Email {
		return string(r)
	}
	return ""
}

// sideCollapsed reports whether the person has collapsed the side bar.
func sideCollapsed(r *http.Request) bool {
	cookie, err := r.Cookie(sideCookie)
	return err == nil && cookie.Value == "collapsed"
}
