package portal

import (
	"cmp"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"hubcloud/domain"
)

// mostPlaced is how many devices a person moves at once.
const mostPlaced = 1000

// roomsView is the page of the rooms of all sites.
type roomsView struct {
	Layout
	Rooms []roomRow
	// Unplaced is how many devices are in no room.
	Unplaced int
	// Site is the chosen site, "" for all.
	Site  string
	Sites []domain.Site
	// NewName is the rejected form of renaming a room.
	NewName struct{ Site, Room, Name, Problem string }
}

// roomRow is a room: the devices at a site with the same name of their room.
type roomRow struct {
	Name, SiteID, Site string
	Devices            int
	Hubs               []domain.HubID
}

// Renamed reports whether a rejected form renames the room.
func (v roomsView) Renamed(room roomRow) bool {
	return v.NewName.Problem != "" && v.NewName.Site == room.SiteID && v.NewName.Room == room.Name
}

// rooms shows the rooms.
func (req *request) rooms() error { return req.showRooms(http.StatusOK, roomsView{}) }

func (req *request) showRooms(status int, view roomsView) error {
	view.Site = req.queryValue("site")
	sites, err := req.allSites()
	if err != nil {
		return err
	}
	view.Sites = sites
	devices, err := req.Reported.FindDevices(req.ctx, req.org, "", nil, maxFoundDevices)
	if err != nil {
		return err
	}
	names := siteNames(sites)
	rows := map[[2]string]*roomRow{}
	for _, d := range devices {
		owner, _ := req.Hubs.Hub(d.HubID)
		switch {
		case view.Site != "" && owner.SiteID != view.Site:
		case d.Room == "":
			view.Unplaced++
		default:
			row := rows[[2]string{owner.SiteID, d.Room}]
			if row == nil {
				row = &roomRow{Name: d.Room, SiteID: owner.SiteID, Site: names[owner.SiteID]}
				rows[[2]string{owner.SiteID, d.Room}] = row
			}
			row.Devices++
			if !slices.Contains(row.Hubs, d.HubID) {
				row.Hubs = append(row.Hubs, d.HubID)
			}
		}
	}
	for _, row := range rows {
		view.Rooms = append(view.Rooms, *row)
	}
	slices.SortFunc(view.Rooms, func(a, b roomRow) int {
		return cmp.Or(
			compareNatural(a.Site, b.Site), cmp.Compare(a.SiteID, b.SiteID),
			compareNatural(a.Name, b.Name), cmp.Compare(a.Name, b.Name),
		)
	})
	view.Layout = req.layout("Rooms", "sites")
	req.render(status, "rooms.html", view)
	return nil
}

// renameRoom changes the name of a room of a site. If another room has the name, they become one.
func (req *request) renameRoom() error {
	var view roomsView
	form := &view.NewName
	form.Site, form.Name = req.formValue("site"), req.formValue("name")
	form.Room = req.http.PostForm.Get("room")
	devices, err := req.Reported.FindDevices(req.ctx, req.org, "", nil, maxFoundDevices)
	if err != nil {
		return err
	}
	inRoom := map[domain.HubID][]int64{}
	for _, d := range devices {
		if owner, _ := req.Hubs.Hub(d.HubID); owner.SiteID == form.Site && d.Room == form.Room {
			inRoom[d.HubID] = append(inRoom[d.HubID], d.DeviceID)
		}
	}
	if form.Name == "" {
		_, err = domain.CleanName("name", "")
	} else {
		err = req.Labels.PlaceDevices(req.ctx, req.origin(), req.org, inRoom, form.Name)
	}
	req.offerUndo(err, "rooms"+req.listQuery(), nil, slices.Collect(maps.Keys(inRoom))...)
	return req.finishForm(
		err, "rooms"+req.listQuery(), "room-renamed", func(status int, problem string) error {
			form.Problem = problem
			return req.showRooms(status, view)
		},
	)
}

// placeDevices moves the devices that were chosen from the list to a room, or to none.
func (req *request) placeDevices() error {
	chosen := req.http.PostForm["device"]
	if len(chosen) == 0 || len(chosen) > mostPlaced {
		return req.showDevices(
			http.StatusBadRequest, "Choose 1 to "+strconv.Itoa(mostPlaced)+" devices.",
		)
	}
	// A label for a device that does not exist would apply to the next device with its number.
	known, err := req.Reported.FindDevices(req.ctx, req.org, "", nil, maxFoundDevices)
	if err != nil {
		return err
	}
	devices := map[domain.HubID][]int64{}
	for _, d := range known {
		if slices.Contains(chosen, deviceField(d.HubID, d.DeviceID)) {
			devices[d.HubID] = append(devices[d.HubID], d.DeviceID)
		}
	}
	err = req.Labels.PlaceDevices(req.ctx, req.origin(), req.org, devices, req.formValue("room"))
	page := "devices" + req.rawQuery()
	req.offerUndo(err, page, nil, slices.Collect(maps.Keys(devices))...)
	return req.finishForm(err, page, "devices-placed", req.showDevices)
}

// deviceField returns a device as a value of a form.
func deviceField(hub domain.HubID, device int64) string {
	return string(hub) + "/" + formatInt(device)
}

// hubsOf returns the hubs of devices, which are values of a form. Others are left out.
func (req *request) hubsOf(devices []string) ([]hubState, error) {
	states, err := req.hubStates(req.ctx, req.org, "")
	return slices.DeleteFunc(states, func(s hubState) bool {
		return !slices.ContainsFunc(devices, func(d string) bool {
			return strings.HasPrefix(d, string(s.ID)+"/")
		})
	}), err
}
