// Package live is what the portal's pages about hubs show and do: the states of an organization's
// hubs, the stream of all their events, a hub's devices with the controls that fit them, its event
// log by time, and charts of what it measured. It knows nothing of sign-in, forms' tokens or pages:
// the portal has looked up by then who asks, and calls it with the organization.
//
// # The stream
//
// One response carries the events of all hubs of an organization, or of one hub, as Server-Sent
// Events, owned by one goroutine. Frames are those of the API's own streams. Beside them stand
// events of the portal's own, whose types begin with `hub.portal_`, which no hub may send:
//
//	hub.portal_positions  {hub: cursor}  where the stream stands in each log; the page keeps these and what each event moves on
//	hub.portal_states     {whole, hubs}  the hubs' states: all of them first, and again once one was released, then those that changed
//	hub.portal_gap        {hub_id}       events of this hub were missed: they have expired, or its log was begun anew
//	hub.portal_now        {}             what there was when the stream began has been told; what follows happens now
//
// A page that comes back posts its positions and gets everything since, each event once, in order
// per hub. States are read from the read models when the stream begins, shortly after each event
// that may have changed them, and every StateInterval all the same: so what a page counts is right
// however long it has been open, and whatever it has missed.
//
// Writes are at least Pace apart: a busy organization wakes a page ten times a second, not at each
// event. A stream ends with its lifetime, with the membership or the session that it was opened
// with, and when the service stops; a reader that does not read is cut off after ten seconds.
//
// # What pages promise
//
// A page keeps its positions, and comes back by itself: within a second of a stream's end and
// without a word, after a fault with a pause that doubles from half a second to fifteen, spread by
// half either way, and at once when the network is back or the machine has slept. It tells that it
// is connecting once that has taken two seconds. One that nobody sees gives its connection up after
// 20 s and catches up when it is seen. What it missed for longer than five minutes, what has
// expired and what a reset took is not shown, and the list says so where it would stand. Signed
// out, or no member any more, it says which, and stops.
//
// A page holds the newest 500 events and the names of the devices of 1,000 hubs, for which it asks
// hub by hub, and only for those that it shows. While it is paused, or somebody points at a row or
// has walked to it with keys, nothing moves, and the newest 500 events are kept for when it goes
// on. More than twenty events in a quarter of a second are shown as the newest 60, once a second;
// the rest is there as soon as the list stands still.
//
// What live parts do to a page takes nothing from under anybody's hands: a control with the focus
// in a field, with a confirmation open or with something typed that was not sent stays as it is,
// and only its value and status change.
//
// # Devices and logs
//
// Nothing that a hub says is kept: a page shows 60 devices, asks the hub for each of them, a few at
// a time, and shows those that it got. The page of a hub waits a moment for it; of a hub that takes
// longer the devices come afterwards. A log is read by the clock: a time leads to a cursor, and
// pages go on from there. A chart reads 20,000 events; when there are more it is drawn of samples
// from all over the time, and says so.
package live
