// Package live provides the portal's data about hubs: the states of an organization's hubs, the
// stream of their events, a hub's devices and their controls, its event log by time, and charts of
// its readings. The portal authenticates the viewer and checks the membership; this package takes
// the organization as an argument.
//
// # The stream
//
// Live.Stream sends the events of all hubs of an organization, of one site, or of one hub, as
// Server-Sent Events. The request's goroutine owns the response. Events of hubs have the same frames
// as on the API's stream of the organization, of which it has a part. Events of the portal have
// types that begin with `hub.portal_`, which hubs cannot send:
//
//	hub.portal_begin   {anew}         the stream begins; anew if the page's position was not valid
//	hub.portal_states  {whole, hubs}  hub states: all (whole), or those that changed
//	hub.portal_now     {}             the backlog is sent; the events that follow are new
//
// Each event of a hub has the position after it as its id, and each stream begins with one. The
// position is renewed with each keepalive, so it moves on with the events of other hubs and does not
// expire while the page is open. A page that reconnects posts its position and receives every later
// event once, in order per hub. Where events of a hub are gone, it receives feed.gap. A position that
// has expired begins anew at the feed's end.
//
// States are read from the read models when the stream begins, shortly after each event that may
// change them and after the organization has got, moved or lost a hub, and every StateInterval. All
// of them are sent when the stream begins and when it loses a hub. So a page shows the right states
// even if it missed events.
//
// Reads of the feed are at least Pace apart, so a busy organization wakes a page ten times a second.
// A stream ends with its lifetime, with the viewer's membership or session, when the service stops
// or is cut off, and when a client does not accept a write within ten seconds.
//
// # The page's scripts
//
// A page reconnects within a second after a stream ends. After an error it waits half a second,
// doubled up to 15 s, with jitter; it retries at once when the network returns or the computer
// wakes up. While the service does not answer, and for the first ten minutes, it waits at most
// 2.25 s, so that it is live within three seconds of the service. After two seconds without a
// connection it shows since when its values are old, and disables commands; forms stay as they are
// and can be sent again. A hidden page disconnects after 20
// s and catches up when it is shown. When it was away for more than five minutes, or its position has
// expired, it begins at the end of the feed, and the list says so, as it does for gaps; the page of a
// hub requests the devices again. A page stops, and says why, when the
// viewer is signed out or no longer a member.
//
// Every event has a severity (SeverityRules): routine, notable, warning or alarm. The list of live
// events shows all but routine ones, until the viewer asks for everything.
//
// A page keeps the newest 500 routine events, the newest 500 others, and the device names of 1,000
// hubs. It requests names hub by
// hub, only for the hubs that it shows. While the list is paused, or the viewer points at a row or
// focuses one, rows do not move, and new events wait. More than 20 events in a quarter of a second
// are shown as the newest 60, once a second; all events that are kept appear when the list is
// paused, pointed at or scrolled.
//
// Updates do not disturb input: while a control has a focused field, an open confirmation or unsent
// input, only its value and its status change.
//
// A page shows nothing older than what it shows already. An event that is older than the shown value
// is not shown; the device is requested instead. An answer of a hub that was requested before an
// event or a command of a channel does not change the channel if it is older; the device is
// requested again. Forms keep what was sent while the command is pending.
//
// # Outcomes of commands
//
// The outcome of a command is what the device reports after the command: the first
// channel.observed that follows the command's channel.desired in the hub's log, whatever the times
// of the events. What was reported before says nothing about the command, also if it is the value
// that was asked for. SendAll also asks the hub for the channel: its status decides, once the
// device has reported since the command. A hub that sends no event for a value that has not changed
// still tells another observed_at than in its answer to the command. Without a report a command is
// not confirmed, never done.
//
// # Devices, logs and charts
//
// The values of devices are asked of their hub. If the hub does not answer, LastDevices shows what
// they last reported, from the read models. ListDevices shows 60 devices a page and asks the hub for
// each of them, eight at a time. A hub that does not answer in time yields a list marked as late,
// and the page loads the devices later. ReadLog reads a log backward from its end or from a time;
// with a filter it reads at most 20,000 events in search of a page. ExportLog reads on to the log's
// beginning, up to 100,000 events, in memory that does not depend on their number.
// DrawCharts reads at most 20,000 events; from a larger log it draws samples from the whole period
// and reports them as incomplete.
package live
