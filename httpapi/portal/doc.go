// Package portal serves the pages for people under /portal: signing in, the list of a person's
// organizations, and for each organization its dashboard, hubs, members, API keys, sites and
// activity.
//
// The API's router calls the handlers of Routes. The router has already given the request an id and
// counted it on the client's network, and it logs the request. Portal.WriteError answers what the
// router itself rejects under /portal. The portal starts no goroutine that outlives a request.
//
// # Signing in
//
// A person types an address and gets a mail with a link that works once, within 15 minutes. Opening
// the link shows the address and a button: mail scanners do not use the link up, and people see
// which account they sign in to. A link that is not mailed (`hubcloud dev` prints one) may sign in
// at once.
//
// Requesting a link does not reveal whether an account exists: the answer and the work are the same
// for every address. Whether the address may have a link (it belongs to a member or an account, or
// sign-up is open) is decided when the mail is sent, and again when the link is used. Requests for
// links are limited per network on each replica, and per address over all replicas. Requesting
// links for another person's address does not lock that person out: each mailed link works.
//
// With Config.Provider, people also sign in at an identity provider. The browser keeps the attempt
// in a cookie, so that nothing is stored for a visitor, and only an answer to the browser's own
// attempt signs in. The account of the verified address is bound to the person at the first
// sign-in; later the person is found by it, and nobody else gets in with the address while it has
// memberships. What the person's groups allow is applied before the session begins. The provider
// must confirm such a session every Provider.ConfirmEvery: a page then goes through the provider,
// and other requests are rejected. Whoever is bound gets no links and no sessions by mail, so that
// the end of an account at the provider is one here; owners always do, so that an organization is
// not lost with the provider.
//
// A session is a random token in a cookie, and lasts 30 days. Only the token's hash is stored. Each
// sign-in creates a new session and ends the browser's previous one. Signing out ends the session
// on every replica at once, with the streams of its open pages. The cookie is HttpOnly and
// SameSite=Lax, and Secure with the prefix __Host- unless --public-url is plain HTTP on a loopback
// address. After signing in, the browser returns to the page it asked for, with its query, if that
// is a page of the portal.
//
// A form whose session has ended is not processed. The browser keeps what was typed in a cookie for
// an hour, and the form's page shows it after signing in. Live pages show that the session has
// ended; what was typed there is kept in the browser's storage until the page is opened again.
//
// # Permissions
//
// Membership and role are looked up in memory on every request, so changes apply at once; streams
// of a removed member end. An organization answers non-members as if it did not exist. Every member
// sees everything, operates devices and may leave. Owners and admins change things. A viewer is a
// member who may only look (domain.Access), and every action asks the directory whether a member is
// one. A role for some sites
// only does not exist: every member may read every page, feed and activity of the organization. The
// directory decides about changes to members: only owners appoint and change owners, and the last
// owner cannot leave.
//
// # Forms
//
// A change is a POST from a page of the portal (checked by Sec-Fetch-Site, or Origin) that carries
// the session's form token, masked anew on each page. On success the browser is redirected (303) to
// a page with a notice: one of a fixed set of sentences, named by a cookie that lives for one page.
// Pages are compressed where nobody learns from their size what is on them. A rejected form is shown
// again with the error beside the field and with what was typed. A new API key is shown in the
// answer to the form itself, so that its secret is stored nowhere. Forms that create something
// carry a submission id: a second submission, by a double click or a reload, does nothing. A form
// that failed may be submitted again.
//
// Requests from scripts (Accept: application/json or text/event-stream) get errors as {"message":
// …}, and 401 in place of a redirect to sign in.
//
// # Invitations
//
// GET /portal/invitations/{token} accepts the invitation, as the contract requires; opening the
// link again changes nothing. Its button signs in, once and until the link expires: the mail went to
// the address of the account, as the mail of a sign-in link does. HEAD and prefetches accept
// nothing. An expired link is 410, an unknown or revoked one 404. If the browser is signed in with
// another address, the page says so, and so does the page
// of a sign-in link.
//
// # What needs attention
//
// The dashboard and the pages of sites and hubs begin with what needs attention, as package
// attention decides from what devices reported last. It stands for hubs that are offline too. If
// the reported states cannot be read in time, the page says so and shows what is known of the hubs.
// A member may mark a condition as seen: the directory keeps that, and the condition steps back for
// everybody until it begins again; any member may undo that. Scripts reload the list within seconds
// of an event that may change it. Every page shows the number of alarms, new ones within 10 s, and
// danger to people as a banner until somebody has seen it. Where a person allows it in the
// settings, their browser also makes a sound and shows a notification, while a page is open. Pages
// outside organizations warn of the person's first 20.
//
// # Notifications
//
// Every member chooses on the page of notifications which severities and which sites are mailed.
// The directory keeps the choice. The link in such a mail needs no session: its token is
// authenticated and holds for one member of one organization. GET shows a button, since mail
// scanners open links; any POST to it ends the mails, also one by a mail program, which is no page
// of the portal (RFC 8058). The link ends nothing for former members, and can do nothing else.
//
// # Actions on many devices
//
// An action on all devices of a site, or on devices that a person chose from a list, asks the hubs
// for their devices, lists what it will do, and sends a command for each chosen device, to 16 hubs
// at once. Nothing is sent to a hub that is offline, and nothing more to a hub that did not answer.
// Each device has a result, for which the page waits some seconds. The same form submitted twice
// sends no command twice.
//
// # Door codes
//
// Owners and admins give people codes of locks, change their times and revoke them; every member sees
// who has one. A code is shown in the answer to the form that sets it, and is in no draft. Events
// name the person whose code a lock reports, unless the slot had another one then.
//
// # Rooms
//
// A room is what devices of a site have as the name of their room: it has no other existence, and
// ends with its last device. Renaming it and moving devices set that name, with one change a hub.
//
// # What cannot be removed
//
// Owners and admins remove hubs: the hub is released, and whoever has its serial can add it. Sites
// cannot be removed: the contract has no such request, and a hub could be added to the site at the
// same moment. Organizations can be renamed, and not removed.
//
// # Pages
//
// Lists have pages of 50. The address names the item that the page follows; if that item has been
// removed, the first page is shown. Members can be searched by address, and hubs by name, id,
// serial and site. Paging and actions keep the search.
//
// Pages are rendered on the server and work without scripts, except for live updates. The content
// security policy allows only the portal's own files, and no inline script or style. Pages cannot
// be framed, load nothing from third parties, are not cached, and send no referrer to other sites.
// A page whose address contains a secret sends no referrer at all, and the secret is not logged.
//
// The English stands in the templates where it is read, and for scripts in assets/texts.js.
// Texts that are computed, or that Go and the scripts share, are in Go: scriptTexts, words and
// notices.
//
// Names that people chose are escaped everywhere, and stand in <bdi> so that their writing
// direction cannot change the text around them. Assets are named after a hash of their content and
// cached forever. Links are relative, so that the service can run under a path of a proxy. Times
// are relative ("3 hours ago"), in <time> with the exact time as title; clocks differ, and nothing
// that has happened is ahead. Exact times are in the reader's time zone, which a script of every
// page puts into a cookie, and in UTC. Without scripts they are in UTC.
//
// # The shell
//
// The side bar has an entry for each of sections; the pages of a section are its tabs. On narrow
// screens it is a popover, which needs no script. Colors, sizes and radii are in assets/tokens.css
// alone. Red is for danger to people and for what cannot be undone. A device's icon has the color
// of the value of its main channel (looks). One search, searchAll, finds hubs, sites, rooms,
// devices, people and pages; "/" and Ctrl-K open it on every page.
//
// # The stream
//
// Portal.stream sends the events of all hubs of an organization, of one site, or of one hub, as
// Server-Sent Events. The request's goroutine owns the response. Events of hubs have the same
// frames as on the API's stream of the organization, of which it has a part. Events of the portal
// have types that begin with `hub.portal_`, which hubs cannot send:
//
//	hub.portal_begin   {anew}         the stream begins; anew if the page's position was not valid
//	hub.portal_states  {whole, hubs}  hub states: all (whole), or those that changed
//	hub.portal_now     {}             the backlog is sent; the events that follow are new
//
// Each event of a hub has the position after it as its id, and each stream begins with one. The
// position is renewed with each keepalive, so it moves on with the events of other hubs and does
// not expire while the page is open. A page that reconnects posts its position and receives every
// later event once, in order per hub. Where events of a hub are gone, it receives feed.gap. A
// position that has expired begins anew at the feed's end.
//
// States are read from the read models when the stream begins, shortly after each event that may
// change them and after the organization has got, moved or lost a hub, and every StateInterval. All
// of them are sent when the stream begins and when it loses a hub. So a page shows the right states
// even if it missed events.
//
// Reads of the feed are at least Pace apart, so a busy organization wakes a page ten times a
// second. A stream ends with its lifetime, with the viewer's membership or session, when the
// service stops or is cut off, and when a client does not accept a write within ten seconds.
//
// # The page's scripts
//
// A page reconnects within a second after a stream ends. After an error it waits half a second,
// doubled up to 15 s, with jitter; it retries at once when the network returns or the computer
// wakes up. While the service does not answer, and for the first ten minutes, it waits at most
// 2.25 s, so that it is live within three seconds of the service. After two seconds without a
// connection it shows since when its values are old, and disables commands; forms stay as they are
// and can be sent again. A hidden page disconnects after 20 s and catches up when it is shown. When
// it was away for more than five minutes, or its position has expired, it begins at the end of the
// feed, and the list says so, as it does for gaps; the page of a hub requests the devices again. A
// page stops, and says why, when the viewer is signed out or no longer a member.
//
// Every event has a severity (severityRules): routine, notable, warning or alarm. The list of live
// events shows all but routine ones, until the viewer asks for everything.
//
// A page keeps the newest 500 routine events, the newest 500 others, and the device names of 1,000
// hubs. It requests names hub by hub, only for the hubs that it shows. While the list is paused, or
// the viewer points at a row or focuses one, rows do not move, and new events wait. More than 20
// events in a quarter of a second are shown as the newest 60, once a second; all events that are
// kept appear when the list is paused, pointed at or scrolled.
//
// Updates do not disturb input: while a control has a focused field, an open confirmation or unsent
// input, only its value and its status change.
//
// A page shows nothing older than what it shows already. An event that is older than the shown
// value is not shown; the device is requested instead. An answer of a hub that was requested before
// an event or a command of a channel does not change the channel if it is older; the device is
// requested again. Forms keep what was sent while the command is pending.
//
// # Outcomes of commands
//
// The outcome of a command is what the device reports after the command: the first
// channel.observed that follows the command's channel.desired in the hub's log, whatever the times
// of the events. What was reported before says nothing about the command, also if it is the value
// that was asked for. sendAll also asks the hub for the channel: its status decides, once the
// device has reported since the command. A hub that sends no event for a value that has not changed
// still tells another observed_at than in its answer to the command. Without a report a command is
// not confirmed, never done. A channel on a page that differs from its last command says by the
// command's outcome whether the device did not do it, or was operated later.
//
// # Events of the organization
//
// The page of events, also with a hub fixed, reads the feed of the organization (package orgfeed)
// back from now, period by period, until it has 100 events of its filter. A file of events has at
// most 100,000, in memory that does not depend on their number. Times are those of the events, so that what a hub
// sent late is found too. Who caused an event (commanders) is the sender of the command, if its
// device reported soon after it, a code that the device reported, or somebody at the device.
//
// # Devices and charts
//
// The values of devices are asked of their hub. If the hub does not answer, lastDeviceList shows
// what they last reported, from the read models. listDevices shows 60 devices a page and asks the
// hub for each of them, eight at a time. A hub that does not answer in time yields a list marked as
// late, and the page loads the devices later. drawCharts reads at most 20,000 events; from a larger
// log it draws samples from the whole period and reports them as incomplete. The page's address
// has the period, also one that a person draws over a chart. The page of a door lists what happened
// to it in the period, as the page of events does.
package portal
