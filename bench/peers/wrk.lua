-- Sends the requests for the paths of a file, one after the other, over and over, with one key; says
-- at the end, in one line, what came back. Arguments: the file, the key.
local requests, last = {}, 0

function init(words)
    local headers = { ["X-API-Key"] = words[2], Host = wrk.host .. ":" .. wrk.port }
    for path in io.lines(words[1]) do
        requests[#requests + 1] = wrk.format("GET", path, headers)
    end
end

function request()
    last = last % #requests + 1
    return requests[last]
end

function done(summary, latency)
    local errors = summary.errors
    local lost = errors.connect + errors.read + errors.write + errors.timeout
    io.write(string.format('\nsummary {"requests": %d, "seconds": %f, "bad": %d, "p50": %f, "p99": %f}\n',
        summary.requests, summary.duration / 1e6, errors.status + lost,
        latency:percentile(50) / 1e3, latency:percentile(99) / 1e3))
end
