#!/usr/bin/env python3
"""A reference hub with a lock and a thermostat. Names such as R-hello-1 are rules of the hub protocol."""
import argparse, collections, concurrent.futures, json, logging, os, random, re, secrets, signal, sqlite3, ssl, subprocess, sys
import threading, time, urllib.parse, urllib.request
from datetime import datetime, timedelta, timezone
import paho.mqtt.client as mqtt

SETUP_CODE = re.compile(r"\d{5}|\d{5}([- ]?\d{5}){7}|90\d{50,200}|MT:[0-9A-Z.-]{10,200}")
BATCH, WINDOW, CAPACITY = 500, 2000, 10_000  # events; 500 of this hub's small events have less than 256 KiB (R-events-1, 2)
ACK_WAIT, HOUR, LATENCY = 5, 3600, 0.2  # seconds
ROOM = 30  # codes of the lock
HELLO = {"protocol": 1, "clock_trusted": True, "credentials": 1, "firmware": {"version": "1.0.0"}, "network": {
    "type": "ethernet", "interface": "eth0", "metered": False, **dict.fromkeys(
        ("ip_address", "ipv6_address", "mac_address", "ssid", "signal_dbm", "carrier", "radio"))}}
LISTED = ("key", "endpoint", "kind", "unit", "available", "readable", "writable", "capabilities")
COMMANDED = LISTED[:5] + ("value", "observed_at", "desired", "desired_at", "status")
TAKES = {  # the writable channels, and which values they take
    "lock": lambda value: isinstance(value, bool), "mode": lambda value: value in ("off", "heat"),
    "heating_setpoint": lambda value: type(value) in (int, float) and 5 <= value <= 35}

def timestamp():
    return datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
class Rejected(Exception): """The error of a response: its type and its message."""
def channel(key, value, unit=None, **capabilities):
    return {"key": key, "endpoint": 0, "kind": key, "unit": unit, "available": True, "readable": True, "writable": key in TAKES,
            "capabilities": capabilities, "value": value, "observed_at": timestamp(), "desired": None, "desired_at": None,
            "status": "synchronized"}
def new_devices():
    lock = [channel("lock", True), channel("battery", 90, "%")]
    thermostat = [channel("heating_setpoint", 21, "°C", min=5, max=35), channel("mode", "heat")]
    return [{"id": number, "name": name, "manufacturer": "Example", "model": "", "channels": channels}
            for number, name, channels in ((1, "Front door", lock), (2, "Hall thermostat", thermostat))]

class Hub:
    def __init__(self, options):
        self.options, self.stopping, self.client, self.ready = options, threading.Event(), None, False
        self.lock = threading.Condition(threading.RLock())  # guards the state and the database
        # What survives a restart: the certificate, the log and its events, the devices, the answers to commands.
        os.makedirs(options.dir, mode=0o700, exist_ok=True)
        self.db = sqlite3.connect(os.path.join(options.dir, "hub.sqlite"), check_same_thread=False)
        self.db.executescript(
            "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; CREATE TABLE IF NOT EXISTS log(id TEXT, newest INTEGER, identity TEXT);"
            "CREATE TABLE IF NOT EXISTS events(seq INTEGER PRIMARY KEY, body TEXT);"
            "CREATE TABLE IF NOT EXISTS devices(id INTEGER PRIMARY KEY, body TEXT);"
            "CREATE TABLE IF NOT EXISTS commands(id TEXT PRIMARY KEY, at REAL, answer TEXT);"
            "CREATE TABLE IF NOT EXISTS codes(device INTEGER, slot INTEGER, label TEXT, PRIMARY KEY (device, slot));")
        with self.db:
            if not self.rows("SELECT id FROM log"):  # a new hub: R-log-2
                self.db.execute("INSERT INTO log VALUES (?, 0, 'null')", (secrets.token_hex(9),))
                for device in new_devices():
                    self.save(device)
        self.log, identity = self.rows("SELECT id, identity FROM log")[0]
        self.identity = json.loads(identity)
        # Outcomes of commands: when due, device id, key, value. A restart completes those that it interrupted.
        self.outcomes = collections.deque((0, d["id"], c["key"], c["desired"]) for d in self.devices()
                                          for c in d["channels"] if c["status"] == "pending")
        self.pool = concurrent.futures.ThreadPoolExecutor(64)  # R-request-3
    def rows(self, query, *values):
        return self.db.execute(query, values).fetchall()
    def save(self, device):
        self.db.execute("REPLACE INTO devices VALUES (?, ?)", (device["id"], json.dumps(device)))
    def devices(self):
        return [json.loads(body) for body, in self.rows("SELECT body FROM devices ORDER BY id")]
    def bounds(self):
        """Returns the oldest number that the hub holds, and the newest that it has used (R-hello-3)."""
        newest = self.rows("SELECT newest FROM log")[0][0]
        return self.rows("SELECT min(seq) FROM events")[0][0] or newest + 1, newest

    def emit(self, kind, device_id, data):
        """Numbers and stores an event in the caller's transaction. A full queue drops its oldest event."""
        number = self.bounds()[1] + 1  # R-log-1
        event = {"seq": number, "type": kind, "device_id": device_id, "time": timestamp(), "clock_trusted": True, "data": data}
        self.db.execute("INSERT INTO events VALUES (?, ?)", (number, json.dumps(event)))
        self.db.execute("DELETE FROM events WHERE seq <= ?", (number - CAPACITY,))
        self.db.execute("UPDATE log SET newest = ?", (number,))

    def enrol(self):
        def openssl(*args, text=""):
            return subprocess.run(["openssl", *args], input=text, check=True, capture_output=True, text=True).stdout
        key = openssl("genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256")
        csr = openssl("req", "-new", "-key", "/dev/stdin", "-subj", "/CN=hub", text=key)
        request = urllib.request.Request(
            self.options.enroll.rstrip("/") + "/link/v1/certificates", headers={"Content-Type": "application/json"},
            data=json.dumps({"serial": self.options.serial, "secret": self.options.secret, "csr": csr}).encode())
        with urllib.request.urlopen(request, timeout=30) as response:
            self.identity = {**json.load(response), "key": key}
        with self.db:
            self.db.execute("UPDATE log SET identity = ?", (json.dumps(self.identity),))  # R-enrol-3
        logging.info("enrolled as %s until %s", self.identity["hub_id"], self.identity["expires_at"])

    def expires_soon(self):
        expires = datetime.fromisoformat(self.identity["expires_at"].replace("Z", "+00:00"))
        return expires - datetime.now(timezone.utc) < timedelta(days=30)

    def connect(self):
        """Serves one connection until it ends. Returns whether the broker accepted the hub."""
        tls = ssl.create_default_context(cadata=self.identity["ca"])  # R-connect-1: trusts this authority only
        pem = os.path.join(self.options.dir, "identity.pem")
        with open(os.open(pem, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600), "w") as file:
            file.write(self.identity["key"] + self.identity["certificate"])
        tls.load_cert_chain(pem)
        version = (mqtt.CallbackAPIVersion.VERSION2,) if hasattr(mqtt, "CallbackAPIVersion") else ()  # paho 2, or 1
        self.topic, broker = f"hub/{self.identity['hub_id']}/", urllib.parse.urlsplit(self.identity["broker"])
        client = mqtt.Client(*version, client_id=self.identity["hub_id"], clean_session=True, reconnect_on_failure=False)
        client.tls_set_context(tls)
        self.accepted, self.ended, begun = False, False, time.monotonic()
        client.on_connect = lambda client, data, flags, code, *more: self.connected(code)
        client.on_subscribe = lambda client, data, mid, codes, *more: self.subscribed(codes)
        client.on_disconnect = lambda *more: self.change(ended=True)
        client.on_message = self.received
        with self.lock:
            self.client = client
            client.connect(broker.hostname, broker.port or 8883, keepalive=30)  # R-connect-4
            client.loop_start()
            while not (self.ended or self.stopping.is_set() or not self.ready and time.monotonic() > begun + 15 or
                       time.monotonic() > begun + HOUR and self.expires_soon()):
                self.lock.wait(min(max(self.work(time.monotonic()) - time.monotonic(), 0.01), 1))
            self.client, self.ready = None, False
        client.disconnect()
        client.loop_stop()
        return self.accepted
    def change(self, **state):
        with self.lock:
            self.__dict__.update(state)
            self.lock.notify()
    def connected(self, code):
        accepted = not getattr(code, "is_failure", code != 0)
        self.change(accepted=accepted, ended=not accepted)
        self.client.subscribe([(self.topic + "ack", 0), (self.topic + "request", 0)])
    def subscribed(self, codes):
        ready = not any(getattr(code, "is_failure", code == 128) for code in codes)
        # R-hello-1, R-hello-5: hello comes after the subscriptions, events after its ack
        self.change(ready=ready, ended=not ready, hello_pending=True, introduced=False, hello_at=0, acked=0, sent=0, resend_at=0, rewound=0)
    def publish(self, suffix, payload):
        if client := self.client:
            client.publish(self.topic + suffix, payload, qos=0)  # R-connect-5, 6, 7

    def work(self, now):
        """Does what there is to do, and returns when to call it again. The caller holds the lock."""
        while self.outcomes and self.outcomes[0][0] <= now:
            self.report(*self.outcomes.popleft()[1:])
        due = self.outcomes[0][0] if self.outcomes else now + HOUR
        if not self.ready:
            return due
        oldest, newest = self.bounds()
        if self.hello_pending or self.acked + 1 < oldest:  # the latter: events were dropped (R-hello-6, R-ack-4)
            if now >= (again := self.hello_at + (ACK_WAIT if self.hello_pending else 1)):  # R-hello-4
                self.hello_at, self.hello_pending, again = now, True, now + ACK_WAIT
                self.publish("hello", json.dumps({**HELLO, "log": self.log, "oldest": oldest, "newest": newest}))
            return min(due, again)
        if self.sent > self.acked and now >= self.resend_at:  # R-events-5
            self.sent, self.rewound = self.acked, now
        while self.sent < newest and (room := min(WINDOW - (self.sent - self.acked), BATCH)) > 0:  # R-events-4
            if self.sent == self.acked:
                self.resend_at = now + ACK_WAIT
            events = [body for body, in self.rows("SELECT body FROM events WHERE seq > ? ORDER BY seq LIMIT ?", self.sent, room)]
            self.sent += len(events)
            self.publish("events", f'{{"log":"{self.log}","events":[{",".join(events)}]}}')
        return min(due, self.resend_at) if self.sent > self.acked else due

    def received(self, client, data, message):
        try:
            content = json.loads(message.payload)
            if message.topic.endswith("/request"):
                self.pool.submit(self.answer, content["id"], content["token"], content["method"], content.get("params") or {})
            elif content["log"] == self.log:  # R-ack-3
                with self.lock:
                    self.ack(int(content["through"]))
        except (ValueError, KeyError, TypeError, AttributeError, RuntimeError) as error:
            logging.warning("message ignored: %r", error)

    def ack(self, through):
        if not self.ready or self.introduced and through < self.acked:  # R-ack-2
            return
        now = time.monotonic()
        self.resend_at = now + ACK_WAIT
        if self.hello_pending:
            self.hello_pending, self.introduced, self.acked, self.sent = False, True, through, through
        elif through > self.acked:  # R-ack-1
            self.acked, self.sent = through, max(self.sent, through)
        else:  # R-events-6; each message on its way repeats the ack, so at most once a second
            self.resend_at = max(now, self.rewound + 1)
        with self.db:
            self.db.execute("DELETE FROM events WHERE seq <= ?", (through,))
            self.db.execute("UPDATE log SET newest = max(newest, ?)", (through,))  # R-ack-5
        self.lock.notify()

    def answer(self, request_id, token, method, params):
        try:
            handler = getattr(self, "do_" + method.replace(".", "_"), None)
            if handler is None:
                raise Rejected("unknown_method", f"no method {method}")  # R-request-6
            with self.lock:
                response = {"result": handler(params)}
                self.lock.notify()
        except Rejected as rejected:
            response = {"error": dict(zip(("type", "message"), rejected.args))}
        except Exception as error:
            logging.error("request failed: %r", error)
            response = {"error": {"type": "hub_error", "message": "the hub failed"}}
        self.publish(f"response/{token}", json.dumps({"id": request_id, **response}))  # R-request-1, 2

    def device(self, params):
        if type(wanted := params.get("device_id")) is not int:
            raise Rejected("invalid_request", "device_id must be an integer")
        for device in self.devices():
            if device["id"] == wanted:
                return device
        raise Rejected("not_found", f"no device {wanted}")
    def do_devices_list(self, params):
        devices = [{**d, "channels": [{m: c[m] for m in LISTED} for c in d["channels"]]} for d in self.devices()]
        return {"devices": devices, "last_event": self.bounds()[1]}  # under the lock: R-list-2
    do_devices_get = lambda self, params: {"device": self.device(params), "last_event": self.bounds()[1]}  # R-list-2
    def do_devices_forget(self, params):
        raise Rejected("invalid_request", f"{self.device(params)['name']} is still on the hub's network")  # R-forget-2
    def do_pairing_open(self, params):  # no device joins or leaves this hub
        code = params.get("setup_code")
        if code is not None and not (isinstance(code, str) and SETUP_CODE.fullmatch(code.strip())):
            raise Rejected("invalid_request", "setup_code cannot be read")  # R-pairing-2
        return {"status": "open", "expires_in": 120}
    do_removal_open = do_pairing_open
    do_pairing_close = do_removal_close = lambda self, params: {}

    def do_channels_command(self, params):
        """Runs a command id once (R-command-4, 5), under the lock, and stores its answer together with its effects."""
        command_id = params.get("command_id")
        if not isinstance(command_id, str) or not 1 <= len(command_id) <= 255:
            raise Rejected("invalid_request", "command_id must have 1 to 255 characters")
        with self.db as db:
            db.execute("DELETE FROM commands WHERE at < ?", (time.time() - 24 * HOUR,))
            remembered = self.rows("SELECT answer FROM commands WHERE id = ?", command_id)
            answer = json.loads(remembered[0][0]) if remembered else self.command(params)
            if not remembered:
                db.execute("INSERT INTO commands VALUES (?, ?, ?)", (command_id, time.time(), json.dumps(answer)))
        if isinstance(answer, dict):
            return answer
        raise Rejected(*answer)

    def keypad(self, params):
        """Returns the number of the lock that the request is about, the slot, and whether it has a code."""
        device, slot = self.device(params), params.get("slot", 1)
        if device["channels"][0]["key"] != "lock":
            raise Rejected("not_found", f"{device['name']} takes no codes")
        if type(slot) is not int or slot < 1:
            raise Rejected("invalid_request", "slot must be a number from 1")
        return device["id"], slot, bool(self.rows("SELECT slot FROM codes WHERE device = ? AND slot = ?", device["id"], slot))
    def do_credentials_list(self, params):  # R-credential-2
        slots = self.rows("SELECT slot FROM codes WHERE device = ? ORDER BY slot", self.keypad(params)[0])
        return {"slots": [slot for slot, in slots], "capacity": ROOM}
    def do_credentials_set(self, params):
        """Sets a code. A radio would do it here; the hub keeps and logs none (R-credential-3, 4, 5)."""
        (device, slot, known), code, label = self.keypad(params), params.get("code"), params.get("label", "")
        if slot > ROOM:
            raise Rejected("lock_full", f"the lock has room for {ROOM} codes")
        if params.get("valid_from") or params.get("valid_until") or params.get("schedule"):
            raise Rejected("command_refused", "this lock cannot keep times")
        if code is None and not known or code is not None and not re.fullmatch("[0-9]{4,10}", str(code)):
            raise Rejected("invalid_request", "code must be 4 to 10 digits")
        with self.db:
            self.db.execute("REPLACE INTO codes VALUES (?, ?, ?)", (device, slot, label))
            if not known:
                self.emit("credential.created", device, {"slot": slot, "label": label})
            self.emit("credential.applied", device, {"slot": slot, "state": "active"})
        return {}
    def do_credentials_remove(self, params):  # R-credential-6
        device, slot, known = self.keypad(params)
        with self.db:
            if known:
                self.db.execute("DELETE FROM codes WHERE device = ? AND slot = ?", (device, slot))
                self.emit("credential.revoked", device, {"slot": slot})
        return {}

    def command(self, params):
        """Starts a command. Returns the result, or the type and message of the error."""
        try:
            device, key, value = self.device(params), params.get("key"), params.get("value")
        except Rejected as rejected:
            return rejected.args
        channel = next((c for c in device["channels"] if c["key"] == key and params.get("endpoint", 0) == 0), None)
        if channel is None:
            return "not_found", f"device {device['id']} has no such channel"
        if key not in TAKES or not TAKES[key](value):
            return "invalid_request", f"{key} is read-only or does not take this value"
        channel.update(desired=value, desired_at=timestamp(), status="pending")  # R-command-1
        self.save(device)
        self.emit("channel.desired", device["id"], {"key": key, "endpoint": 0, "value": value})  # R-command-7
        self.outcomes.append((time.monotonic() + LATENCY, device["id"], key, value))
        return {"channel": {member: channel[member] for member in COMMANDED}}

    def report(self, device_id, key, value):
        """Stores the value that a device reports after a command: R-type-1, R-channel-4."""
        device = self.device({"device_id": device_id})
        channel = next(c for c in device["channels"] if c["key"] == key)
        channel.update(value=value, observed_at=timestamp(), status="synchronized" if channel["desired"] == value else "diverged")
        with self.db:
            self.save(device)
            self.emit("channel.observed", device_id, {"key": key, "endpoint": 0, "value": value})

    def run(self):
        failures, refusals, untrusted, next_enrolment, next_renewal, next_trust = 0, 0, 0, 0.0, 0.0, 0.0
        while not self.stopping.is_set():
            wait, begun = 1, time.monotonic()
            try:
                distrusts = untrusted >= 3 and begun >= next_trust  # R-enrol-7
                if self.identity is None or distrusts or self.expires_soon() and begun >= next_renewal or refusals and begun >= next_enrolment:
                    # R-enrol-4, R-enrol-5: a refused hub enrols at once after a restart, then every six hours
                    refusals, untrusted, next_renewal, next_enrolment = 0, 0, begun + HOUR, begun + 6 * HOUR
                    self.enrol()
                    next_renewal, next_trust = 0.0, begun + HOUR if distrusts else next_trust  # renews with the next connection
                refusals, untrusted = 0 if self.connect() else refusals + 1, 0
                failures = 0 if time.monotonic() > begun + 10 else failures
            except (OSError, ValueError, subprocess.CalledProcessError) as error:
                logging.warning("not connected: %s", error)
                if self.identity is None and getattr(error, "code", 0) in (400, 401):
                    return 1
                wait = int(getattr(error, "headers", {}).get("Retry-After") or 1)  # R-enrol-6
                untrusted += isinstance(error, ssl.SSLCertVerificationError)
                refusals += isinstance(error, ssl.SSLError)
            failures += 1
            self.stopping.wait(max(wait, min(30, 2 ** min(failures, 6) / 2) * random.uniform(1, 1.5)))  # R-connect-8
        return 0

def main():
    parser = argparse.ArgumentParser(description="A reference hub in Python, with a lock and a thermostat.")
    parser.add_argument("--enroll", required=True, metavar="URL", help="base URL of the cloud, without /link/v1")
    parser.add_argument("--serial", required=True, help="serial of the hub")
    parser.add_argument("--secret", required=True, help="enrolment secret of the hub")
    parser.add_argument("--dir", required=True, help="folder that keeps certificate, events and devices")
    options = parser.parse_args()
    if urllib.parse.urlsplit(options.enroll).scheme not in ("http", "https"):
        parser.error(f"--enroll {options.enroll}: must be http://... or https://...")
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    hub = Hub(options)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: hub.stopping.set())
    sys.exit(hub.run())

if __name__ == "__main__":
    main()
